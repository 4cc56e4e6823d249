// A problem, or something to know, in a frame: what, why and since when, and beside it the next step.
import type { ReactNode } from "react";
import { PageIcon } from "./icon.tsx";
import type { PageIconName } from "./icon-names.ts";
import css from "./notice.module.css";

export interface NoticeProps {
  readonly tone: "bad" | "warn" | "busy";
  readonly icon?: PageIconName;
  readonly title: ReactNode;
  /** Makes it a region with this name. */
  readonly label?: string;
  /** It is read out when it appears. */
  readonly role?: "alert" | "status";
  /** Buttons and links. */
  readonly actions?: ReactNode;
  readonly children?: ReactNode;
}
export const Notice = ({ tone, icon = tone === "busy" ? "info" : "warning", title, label, role, actions, children }: NoticeProps) => {
  const Frame = label === undefined ? "div" : "section";
  return (
    <Frame className={css["notice"]} data-tone={tone} role={role} aria-label={label}>
      <PageIcon name={icon} />
      <div className={css["words"]}>
        <strong>{title}</strong>
        {children}
      </div>
      {actions === undefined ? null : <div className={css["actions"]}>{actions}</div>}
    </Frame>
  );
};

// The page of one thing: the way to it, its name and state, what is known of it in a line, what people do with it, and its tabs.
import { Fragment, type ReactNode, useMemo, useRef } from "react";
import css from "./detail-page.module.css";
import { PageIcon } from "./icon.tsx";
import type { PageIconName } from "./icon-names.ts";
import { useKeys } from "./keyboard.ts";
import { Menu } from "./menu.tsx";
import { MenuItems } from "./menu-items.tsx";
import parts from "./parts.module.css";
import { useTitle } from "./parts.tsx";
import { Shape, type Tone } from "./status.tsx";

/** The state of the thing, in its header. */
export const Pill = ({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) => (
  <span className={css["pill"]} data-tone={tone}>
    <Shape tone={tone} />
    {children}
  </span>
);

/** The menu "..." of a page, which `.` opens. */
const More = ({ children }: { readonly children: ReactNode }) => {
  const around = useRef<HTMLSpanElement>(null);
  useKeys(useMemo(() => ({ ".": () => around.current?.querySelector("button")?.click() }), []));
  return (
    <span ref={around} className={css["more"]}>
      <Menu name="More actions" className={css["square"]} button={<PageIcon name="ellipsis" />}>
        <MenuItems label="More actions">{children}</MenuItems>
      </Menu>
    </span>
  );
};

export interface PageFact {
  readonly icon?: PageIconName;
  readonly words: ReactNode;
}

export interface DetailPageProps {
  /** Links to what is above it, the outermost first. */
  readonly path: readonly ReactNode[];
  readonly title: string;
  /** Before the title: the tile of an app. */
  readonly mark?: ReactNode;
  /** A `Pill`. */
  readonly pill?: ReactNode;
  /** What stands in a line below the title, the most important first. */
  readonly facts?: readonly PageFact[];
  /** Buttons, and at the end the filled one: `data-kind="primary"`. */
  readonly actions?: ReactNode;
  /** What is done less often: `MenuItem`, the dangerous ones last. */
  readonly more?: ReactNode;
  /** `Tabs`. */
  readonly tabs?: ReactNode;
  /** As high as the window: a table in it scrolls by itself. */
  readonly fill?: boolean;
  readonly children: ReactNode;
}

export const DetailPage = ({ path, title, mark, pill, facts = [], actions, more, tabs, fill = false, children }: DetailPageProps) => {
  useTitle(title);
  return (
    <div className={parts["page"]} data-fill={fill || undefined}>
      <header className={css["head"]}>
        <nav className={css["path"]} aria-label="Path">
          {path.map((link, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a place in the path has no other identity
            <Fragment key={at}>{link} / </Fragment>
          ))}
          {title}
        </nav>
        <div className={css["title"]}>
          <h1>
            {mark}
            {title}
          </h1>
          {pill}
        </div>
        {actions === undefined && more === undefined ? null : (
          <div className={css["actions"]}>
            {actions}
            {more === undefined ? null : <More>{more}</More>}
          </div>
        )}
        {facts.length === 0 ? null : (
          <ul className={css["facts"]}>
            {facts.map(({ icon, words }, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a place in the line has no other identity
              <li key={at}>
                {icon === undefined ? null : <PageIcon name={icon} />}
                <span>{words}</span>
              </li>
            ))}
          </ul>
        )}
        {tabs}
      </header>
      {children}
    </div>
  );
};

/** What people work with, and beside it, or below where there is no room, what they look up. */
export const Beside = ({ main, side }: { readonly main: ReactNode; readonly side: ReactNode }) => (
  <div className={css["beside"]}>
    <div className="stack">{main}</div>
    <div className="stack">{side}</div>
  </div>
);

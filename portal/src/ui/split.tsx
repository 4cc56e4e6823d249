// A list with what is open beside it; on narrow screens what is open comes first. Escape closes it.
import { type ReactNode, useMemo } from "react";
import { useKeys } from "./keyboard.ts";
import css from "./split.module.css";

export interface SplitProps {
  readonly list: ReactNode;
  /** Null while nothing is open. */
  readonly detail: ReactNode | null;
  readonly onClose: () => void;
}

export const Split = ({ list, detail, onClose }: SplitProps) => {
  const isOpen = detail !== null;
  useKeys(useMemo(() => (isOpen ? { Escape: onClose } : {}), [isOpen, onClose]));
  return (
    <div className={css["split"]} data-open={isOpen || undefined}>
      <div className={css["list"]}>{list}</div>
      {isOpen ? <div className={css["detail"]}>{detail}</div> : null}
    </div>
  );
};

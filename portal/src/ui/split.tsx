// A list with what is open beside it; on narrow screens what is open comes first.
import type { ReactNode } from "react";
import css from "./split.module.css";

export const Split = ({ list, detail }: { readonly list: ReactNode; readonly detail: ReactNode | null }) => (
  <div className={css["split"]} data-open={detail === null ? undefined : true}>
    <div className={css["list"]}>{list}</div>
    {detail === null ? null : <div className={css["detail"]}>{detail}</div>}
  </div>
);

// Panels beside each other as far as there is room.
import type { ReactNode } from "react";
import css from "./columns.module.css";

export const Columns = ({ children }: { readonly children: ReactNode }) => <div className={css["columns"]}>{children}</div>;

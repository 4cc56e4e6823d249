// The frame for people who stand in no tenant, or whom nobody knows yet: what they came for, without places that would be refused.
import type { ReactNode } from "react";
import css from "./signed-out-frame.module.css";

export const SignedOutFrame = ({ children }: { readonly children: ReactNode }) => (
  <div className={css["outside"]}>
    <header className={css["name"]}>Mooring</header>
    <main>{children}</main>
  </div>
);

// Several things to choose, each with a box to check.
import type { ReactNode } from "react";
import { useId } from "../use-id.ts";
import css from "./checks.module.css";

export interface CheckProps {
  readonly name: string;
  readonly value?: string;
  readonly label: ReactNode;
  readonly hint?: string;
  readonly defaultChecked?: boolean;
  /** With `onChange`, the form's own state decides. */
  readonly checked?: boolean;
  readonly disabled?: boolean;
  readonly onChange?: (event: { readonly target: { readonly checked: boolean } }) => void;
}

export const Check = ({ label, hint, ...input }: CheckProps) => {
  const id = useId();
  return (
    <label className={css["check"]}>
      <input type="checkbox" aria-labelledby={id} aria-describedby={hint === undefined ? undefined : `${id}-hint`} {...input} />
      <span>
        <span id={id}>{label}</span>
        {hint === undefined ? null : (
          <span id={`${id}-hint`} className={css["hint"]}>
            {hint}
          </span>
        )}
      </span>
    </label>
  );
};

export const Checks = ({ label, hint, children }: { readonly label: ReactNode; readonly hint?: string; readonly children: ReactNode }) => (
  <fieldset className={css["checks"]}>
    <legend>{label}</legend>
    {hint === undefined ? null : <p className="muted">{hint}</p>}
    <div className={css["list"]}>{children}</div>
  </fieldset>
);

// A secret that the gateway shows once, with what to do with it.
import type { ReactNode } from "react";
import { Copyable } from "./parts.tsx";
import css from "./secret-once.module.css";

export interface SecretOnceProps {
  /** What the secret is, such as `API key`. */
  readonly label: string;
  readonly secret: string;
  /** A command that works as it is. */
  readonly command?: string;
  readonly children?: ReactNode;
  readonly onDone: () => void;
}

export const SecretOnce = ({ label, secret, command, children, onDone }: SecretOnceProps) => (
  <div className="stack">
    <p>
      <strong>Copy it now: nobody can show it again.</strong>
    </p>
    {children}
    <div className={css["value"]}>
      <div className="muted">{label}</div>
      <Copyable text={secret} />
    </div>
    {command === undefined ? null : (
      <div className={css["value"]}>
        <div className="muted">Try it</div>
        <Copyable text={command} />
      </div>
    )}
    <div className="row">
      <button type="button" data-kind="primary" onClick={onDone}>
        I have copied it
      </button>
    </div>
  </div>
);

// Dialogs: a form in one, and the question before something that cannot be undone.
import { Dialog as Base } from "@base-ui/react/dialog";
import { type FormEvent, type ReactNode, useId, useRef, useState } from "react";
import css from "./dialog.module.css";
import { Failure } from "./failure.tsx";

export interface DialogProps {
  readonly title: string;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A press or key that belongs to a dialog above this one leaves this one open: the sign-in, which comes over whatever is on the page. */
const isOnTop = (popup: Element | null): boolean => [...document.querySelectorAll('[role="dialog"]')].at(-1) === popup;

export const Dialog = ({ title, open, onClose, children }: DialogProps) => {
  const popup = useRef<HTMLDivElement>(null);
  return (
    <Base.Root open={open} onOpenChange={(next) => (next || !isOnTop(popup.current) ? undefined : onClose())}>
      <Base.Portal>
        <Base.Backdrop className={css["backdrop"]} />
        <Base.Popup
          ref={popup}
          className={css["popup"]}
          // Where somebody goes on: the button that closes it comes first in the page.
          initialFocus={() => popup.current?.querySelector<HTMLElement>("input, select, textarea") ?? true}
        >
          <div className={css["head"]}>
            <Base.Title className={css["title"]}>{title}</Base.Title>
            <Base.Close aria-label="Close" className={css["close"]}>
              ×
            </Base.Close>
          </div>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
};

export interface FormProps {
  /** What the button does, such as `Create key`. */
  readonly submit: string;
  readonly busy: boolean;
  readonly error: unknown;
  readonly onSubmit: (fields: FormData) => void;
  readonly danger?: boolean;
  readonly disabled?: boolean;
  readonly onCancel?: () => void;
  /** Instead of `Cancel`. */
  readonly back?: string;
  /** Another button, for what the person may do instead. */
  readonly beside?: ReactNode;
  readonly children: ReactNode;
}

/** The failure stays in the form, and the form keeps what was typed. */
export const Form = ({ submit, busy, error, onSubmit, danger = false, disabled = false, onCancel, back = "Cancel", beside, children }: FormProps) => {
  const send = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (!busy && !disabled) onSubmit(new FormData(event.currentTarget));
  };
  return (
    <form className="stack" onSubmit={send}>
      {children}
      {error === null || error === undefined ? null : <Failure error={error} />}
      <div className="row">
        <button type="submit" data-kind={danger ? "danger" : "primary"} disabled={busy || disabled}>
          {busy ? "…" : submit}
        </button>
        {onCancel === undefined ? null : (
          <button type="button" onClick={onCancel}>
            {back}
          </button>
        )}
        {beside}
      </div>
    </form>
  );
};

/** A labelled control: `children` is one input, select or textarea that takes this id. */
export const Field = ({
  label,
  hint,
  children,
}: {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly children: (id: string, hintId: string | undefined) => ReactNode;
}) => {
  const id = useId();
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  return (
    <div className={css["field"]}>
      <label htmlFor={id}>{label}</label>
      {children(id, hintId)}
      {hint === undefined ? null : (
        <div id={hintId} className={css["hint"]}>
          {hint}
        </div>
      )}
    </div>
  );
};

export interface TextFieldProps {
  readonly label: string;
  readonly name: string;
  readonly hint?: ReactNode;
  readonly type?: "text" | "email" | "number" | "password" | "datetime-local" | "url";
  readonly required?: boolean;
  readonly defaultValue?: string | number | undefined;
  readonly placeholder?: string;
  readonly maxLength?: number;
  readonly min?: number;
  readonly max?: number;
}
export const TextField = ({ label, hint, ...input }: TextFieldProps) => (
  <Field label={label} hint={hint}>
    {(id, hintId) => <input id={id} aria-describedby={hintId} autoComplete="off" {...input} />}
  </Field>
);

export interface SelectFieldProps {
  readonly label: string;
  readonly name: string;
  readonly hint?: ReactNode;
  readonly defaultValue?: string | undefined;
  /** Value and word. */
  readonly options: readonly (readonly [value: string, word: string])[];
}
export const SelectField = ({ label, hint, options, ...select }: SelectFieldProps) => (
  <Field label={label} hint={hint}>
    {(id, hintId) => (
      <select id={id} aria-describedby={hintId} {...select}>
        {options.map(([value, word]) => (
          <option key={value} value={value}>
            {word}
          </option>
        ))}
      </select>
    )}
  </Field>
);

export interface ConfirmProps {
  readonly title: string;
  readonly open: boolean;
  readonly onClose: () => void;
  /** What happens then. */
  readonly children: ReactNode;
  readonly submit: string;
  readonly back?: string;
  /** The person has to type this, so that nobody does it by a slip. */
  readonly typed?: string;
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onConfirm: () => void;
}

export const Confirm = ({ title, open, onClose, children, submit, back, typed, action, onConfirm }: ConfirmProps) => {
  const [text, setText] = useState("");
  return (
    <Dialog title={title} open={open} onClose={onClose}>
      <Form
        danger
        submit={submit}
        busy={action.isPending}
        error={action.error}
        onCancel={onClose}
        {...(back === undefined ? {} : { back })}
        disabled={typed !== undefined && text !== typed}
        onSubmit={onConfirm}
      >
        <div>{children}</div>
        {typed === undefined ? null : (
          <Field label={`Type ${typed} to confirm`}>
            {(id) => <input id={id} value={text} autoComplete="off" onChange={(event) => setText(event.target.value)} />}
          </Field>
        )}
      </Form>
    </Dialog>
  );
};

// Dialogs: a form in one, and the question before something that cannot be undone.
import { type FormEvent, type ReactNode, type SyntheticEvent, useLayoutEffect, useRef, useState } from "react";
import css from "./dialog.module.css";
import { Failure } from "./failure.tsx";
import { Icon } from "./icon.tsx";
import { useId } from "./use-id.ts";

export interface DialogProps {
  readonly title: string;
  readonly open: boolean;
  readonly onClose: () => void;
  /** Comes up from the bottom edge, as wide as the window: for phones. */
  readonly sheet?: boolean;
  readonly children: ReactNode;
}

/** The browser's own: it keeps the focus inside, and gives it back to where it was. */
const Opened = ({ title, onClose, sheet, children }: Omit<DialogProps, "open">) => {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    // Where somebody goes on: the button that closes it comes first in the page.
    current?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => current?.close();
  }, []);
  const ask = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (event.target === event.currentTarget) onClose();
  };
  // A browser closes a dialog without asking when somebody insists. Whoever opened it decides.
  const reopen = (): void => {
    if (dialog.current?.isConnected === true && !dialog.current.open) dialog.current.showModal();
  };
  return (
    <dialog ref={dialog} className={css["popup"]} data-sheet={sheet || undefined} aria-labelledby={id} onCancel={ask} onClose={reopen}>
      <div className={css["head"]}>
        <h2 id={id} className={css["title"]}>
          {title}
        </h2>
        <button type="button" aria-label="Close" className={css["close"]} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      {children}
    </dialog>
  );
};

export const Dialog = ({ open, ...same }: DialogProps) => (open ? <Opened {...same} /> : null);

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

export interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** Why the value was refused. */
  readonly fault?: string | undefined;
  readonly children: (id: string, describedBy: string | undefined) => ReactNode;
}

/** A labelled control: `children` is one input, select or textarea that takes this id. */
export const Field = ({ label, hint, fault, children }: FieldProps) => {
  const id = useId();
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  const faultId = fault === undefined ? undefined : `${id}-fault`;
  return (
    <div className={css["field"]}>
      <label htmlFor={id}>{label}</label>
      {children(id, [faultId, hintId].filter((each) => each !== undefined).join(" ") || undefined)}
      {fault === undefined ? null : (
        <div id={faultId} className={css["fault"]}>
          {fault}
        </div>
      )}
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
  readonly type?: "text" | "email" | "number" | "password" | "date" | "datetime-local" | "url";
  readonly required?: boolean;
  readonly defaultValue?: string | number | undefined;
  readonly placeholder?: string;
  readonly maxLength?: number;
  readonly min?: number;
  readonly max?: number;
  /** For what is shown beside the form. */
  readonly onChange?: (event: { readonly target: { readonly value: string } }) => void;
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
  /** For a choice on which the rest of the form depends. */
  readonly onChange?: (event: { readonly target: { readonly value: string } }) => void;
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

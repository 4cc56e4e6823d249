// The field for the code that a machine shows.
import { type FormEvent, useState } from "react";
import { Field } from "../../ui/dialog.tsx";
import { useId } from "../../ui/use-id.ts";
import css from "./pair.module.css";
import { isCode, showCode } from "./pairing-code.ts";
import { text } from "./text.ts";

export const CodeForm = ({ code = "", onLookUp }: { readonly code?: string | undefined; readonly onLookUp: (code: string) => void }) => {
  const [typed, setTyped] = useState(() => showCode(code));
  const [refused, setRefused] = useState(code !== "" && !isCode(code));
  const hintId = useId();
  const send = (event: FormEvent): void => {
    event.preventDefault();
    setRefused(!isCode(typed));
    if (isCode(typed)) onLookUp(showCode(typed));
  };
  return (
    <form className="stack" onSubmit={send}>
      <div className={css["codeRow"]}>
        <Field label={text.code}>
          {(id) => (
            <input
              id={id}
              className={css["code"]}
              aria-describedby={hintId}
              aria-invalid={refused || undefined}
              autoComplete="off"
              autoCapitalize="characters"
              spellCheck={false}
              placeholder="XXXX-XXXX"
              maxLength={24}
              value={typed}
              onChange={({ target }) => {
                // In the middle of the text, formatting would move the caret.
                const atEnd = target.selectionStart === target.value.length && target.value.length > typed.length;
                setTyped(atEnd ? showCode(target.value) : target.value);
              }}
            />
          )}
        </Field>
        <button type="submit" data-kind="primary">
          {text.lookUp}
        </button>
      </div>
      <p id={hintId} className="muted">
        {text.codeHint}
      </p>
      {refused ? <p role="alert">{text.notACode}</p> : null}
    </form>
  );
};

// Picks several things by typing a part of their names. What was picked stands above the field, each with a button that removes it.
import { type KeyboardEvent, useState } from "react";
import { Field } from "../dialog.tsx";
import css from "./pick-field.module.css";

export interface Choice {
  readonly id: string;
  readonly word: string;
}

export interface PickFieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly placeholder?: string;
  readonly picked: readonly Choice[];
  /** What fits to the typed text. Those that are picked already are left out. */
  readonly choices: readonly Choice[];
  readonly onType: (typed: string) => void;
  readonly onPick: (id: string) => void;
  readonly onRemove: (id: string) => void;
}

let isPressed = false;
for (const type of ["pointerdown", "pointerup", "pointercancel"]) addEventListener(type, () => (isPressed = type === "pointerdown"), true);
/** Waits until the mouse is let go: a button that moves while it is pressed is not clicked. */
const afterPress = (run: () => void): void => {
  if (isPressed) addEventListener("pointerup", () => setTimeout(run), { once: true });
  else run();
};

export const PickField = ({ label, hint, placeholder, picked, choices, onType, onPick, onRemove }: PickFieldProps) => {
  const [typed, setTyped] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const shown = open ? choices.filter(({ id }) => picked.every((each) => each.id !== id)) : [];
  const current = Math.min(at, shown.length - 1);

  const type = (text: string): void => {
    setTyped(text);
    onType(text);
    setOpen(true);
    setAt(0);
  };
  const pick = (choice: Choice | undefined): void => {
    if (choice === undefined) return;
    onPick(choice.id);
    type("");
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const last = picked.at(-1);
    if (event.key === "Backspace" && typed === "" && last !== undefined) onRemove(last.id);
    // Escape also closes the dialog around the field; here it closes the list first.
    if (event.key === "Escape" && shown.length > 0) {
      event.stopPropagation();
      setOpen(false);
    }
    if (event.key === "Enter") {
      // Enter never sends the form from here.
      event.preventDefault();
      pick(shown[current]);
    }
    if (step === 0) return;
    event.preventDefault();
    setOpen(true);
    if (shown.length > 0) setAt((current + step + shown.length) % shown.length);
  };
  return (
    <Field label={label} hint={hint || undefined}>
      {(id, hintId) => (
        <div className={css["field"]}>
          {picked.length === 0 ? null : (
            <ul className={css["picked"]} aria-label={`${label}: picked`}>
              {picked.map((choice) => (
                <li key={choice.id}>
                  {choice.word}
                  <button type="button" aria-label={`Remove ${choice.word}`} onClick={() => onRemove(choice.id)}>
                    ×
                  </button>
                </li>
              ))}
            </ul>
          )}
          <input
            id={id}
            role="combobox"
            aria-describedby={hintId}
            aria-expanded={shown.length > 0}
            aria-controls={`${id}-list`}
            aria-autocomplete="list"
            aria-activedescendant={shown.length > 0 ? `${id}-${current}` : undefined}
            autoComplete="off"
            spellCheck={false}
            placeholder={placeholder}
            value={typed}
            maxLength={100}
            onChange={(event) => type(event.target.value)}
            onFocus={() => setOpen(true)}
            onBlur={() => afterPress(() => setOpen(false))}
            onKeyDown={press}
          />
          <div id={`${id}-list`} role="listbox" aria-label={`${label}: choices`} className={css["choices"]} hidden={shown.length === 0}>
            {shown.map((choice, index) => (
              <div
                key={choice.id}
                id={`${id}-${index}`}
                role="option"
                tabIndex={-1}
                aria-selected={index === current}
                className={css["choice"]}
                // Before the field loses the focus.
                onMouseDown={(event) => {
                  event.preventDefault();
                  pick(choice);
                }}
              >
                {choice.word}
              </div>
            ))}
          </div>
        </div>
      )}
    </Field>
  );
};

// A value of any size as text: JSON is indented, and what is long scrolls in its own frame.
import css from "./value.module.css";

const MAX_SHOWN = 100_000;

const shown = (value: unknown): string => {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
};

/** Text that is JSON, as what it says; any other text as it is. */
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** Its label is for everybody, where several stand below each other. */
export const NamedValue = ({ label, value }: { readonly label: string; readonly value: unknown }) => (
  <div className={css["named"]}>
    <div className="muted" aria-hidden="true">
      {label}
    </div>
    <Value label={label} value={value} />
  </div>
);

export const Value = ({ label, value }: { readonly label: string; readonly value: unknown }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and only a focused part scrolls by keyboard
  <section className={css["value"]} tabIndex={0} aria-label={label}>
    <pre>{shown(value)}</pre>
  </section>
);

// A time zone, with those that the browser knows as suggestions.
import { Field } from "../dialog.tsx";
import { useId } from "../use-id.ts";

const ZONES: readonly string[] = Intl.supportedValuesOf("timeZone");

export interface TimeZoneFieldProps {
  readonly label: string;
  readonly name: string;
  readonly hint?: string;
  readonly required?: boolean;
  readonly defaultValue: string;
}

export const TimeZoneField = ({ label, hint, ...input }: TimeZoneFieldProps) => {
  const list = useId();
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <>
          <input id={id} aria-describedby={hintId} list={list} maxLength={64} autoComplete="off" spellCheck={false} {...input} />
          <datalist id={list}>
            {ZONES.map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
};

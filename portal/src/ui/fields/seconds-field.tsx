// A length of time out of a few usual ones; one that is stored and not among them is offered, too.
import { SelectField } from "../dialog.tsx";
import { duration } from "../time.tsx";

export interface SecondsFieldProps {
  readonly label: string;
  readonly name: string;
  readonly hint?: string;
  readonly choices: readonly number[];
  readonly defaultValue: number;
  /** What no time at all is called. */
  readonly zero?: string;
}

export const secondsText = (seconds: number, zero = "0 s"): string => (seconds === 0 ? zero : duration(1_000 * seconds));

export const SecondsField = ({ choices, defaultValue, zero, ...field }: SecondsFieldProps) => (
  <SelectField
    {...field}
    defaultValue={String(defaultValue)}
    options={[...new Set([...choices, defaultValue])].toSorted((a, b) => a - b).map((seconds) => [String(seconds), secondsText(seconds, zero)])}
  />
);

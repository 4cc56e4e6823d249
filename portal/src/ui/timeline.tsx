// What happened, step by step: the state it led to, the facts of the step, and how long it took since the step before.
import type { ReactNode } from "react";
import { Status } from "./status.tsx";
import { duration, exactTime } from "./time.tsx";
import css from "./timeline.module.css";

export interface Step {
  readonly status: string;
  /** Instead of the status. */
  readonly word?: string;
  readonly at: string;
  readonly facts: readonly ReactNode[];
  readonly detail?: string | undefined;
}

export const Timeline = ({ label, steps }: { readonly label: string; readonly steps: readonly Step[] }) => (
  <ol className={css["steps"]} aria-label={label}>
    {steps.map(({ status, word, at, facts, detail }, index) => {
      const before = steps[index - 1];
      return (
        // biome-ignore lint/suspicious/noArrayIndexKey: steps are only added at the end
        <li key={index} className={css["step"]}>
          <Status status={status} {...(word === undefined ? {} : { word })} />
          <span className={`${css["facts"]} muted`}>
            {facts.map((fact, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the facts of a step never change
              <span key={place}>{fact}</span>
            ))}
          </span>
          <time className="muted" dateTime={at} title={exactTime(at)}>
            {before === undefined ? timeOfDay.format(new Date(at)) : `+${duration(Date.parse(at) - Date.parse(before.at))}`}
          </time>
          {detail === undefined ? null : <code className={css["detail"]}>{detail}</code>}
        </li>
      );
    })}
  </ol>
);

const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

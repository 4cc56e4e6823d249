// Where the time went: one bar with a part per state, each as long as the state lasted, and the same in words.

import { Status, toneColor, toneOf } from "../status.tsx";
import { duration } from "../time.tsx";
import css from "./phases.module.css";

export interface Phase {
  readonly status: string;
  /** Null for a last state that does not end. */
  readonly ms: number | null;
}

export const Phases = ({ label, of }: { readonly label: string; readonly of: readonly Phase[] }) => (
  <div className={css["phases"]}>
    <div className={css["bar"]} aria-hidden="true">
      {of.map(({ status, ms }, at) =>
        ms === null ? null : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a state may come twice, and the order never changes
          <span key={at} className={`${css["part"]} ${toneColor(toneOf(status))}`} style={{ flexGrow: Math.max(1, ms) }} title={`${status} ${duration(ms)}`} />
        ),
      )}
    </div>
    <ol className={css["names"]} aria-label={label}>
      {of.map(({ status, ms }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: as above
        <li key={at}>
          <Status status={status} /> {ms === null ? null : <span className="muted">{duration(ms)}</span>}
        </li>
      ))}
    </ol>
  </div>
);

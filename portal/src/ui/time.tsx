// Times for people: how long ago or how long until, ticking while somebody looks, with the exact time beside it.
import { useSyncExternalStore } from "react";
import { gatewayNow } from "./clock.ts";

const TICK_MS = 1_000;
let now = gatewayNow();
const listeners = new Set<() => void>();
setInterval(() => {
  if (document.hidden || listeners.size === 0) return;
  now = gatewayNow();
  for (const listener of listeners) listener();
}, TICK_MS);

/** The current time, once a second, as the gateway has it. */
export const useNow = (): number =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => now,
  );

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** Such as `3 min`; the two largest units where one alone would mislead. */
export const duration = (ms: number): string => {
  const seconds = Math.abs(ms) / 1_000;
  if (seconds < 1) return `${Math.round(Math.abs(ms))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  const [unit, size] = UNITS[at] ?? ["s", 1];
  const whole = Math.floor(seconds / size);
  const [nextUnit, nextSize] = UNITS[at + 1] ?? ["", 1];
  const rest = Math.floor((seconds - whole * size) / nextSize);
  return whole < 3 && rest > 0 && nextUnit !== "" ? `${whole} ${unit} ${rest} ${nextUnit}` : `${whole} ${unit}`;
};

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const dayAndClock = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
export const exactTime = (at: string): string => exact.format(new Date(at));
export const clockOf = (at: string): string => clock.format(new Date(at));
export const dayOf = (at: string): string => day.format(new Date(at));

const relative = (ms: number): string => {
  if (Math.abs(ms) < 2_000) return "now";
  const length = duration(Math.round(ms / 1_000) * 1_000).replace(".0 ", " ");
  return ms < 0 ? `${length} ago` : `in ${length}`;
};

export const Ago = ({ at }: { readonly at: string | null | undefined }) => {
  const current = useNow();
  if (at == null) return <span className="muted">never</span>;
  return (
    <time dateTime={at} title={exactTime(at)}>
      {relative(Date.parse(at) - current)}
    </time>
  );
};

/** The width of a list's column of `Ago`, at its longest. */
export const AGO_WIDTH = "118px";

/** An exact time in a list: today's with its seconds, an older one with its day. */
export const When = ({ at }: { readonly at: string }) => (
  <time dateTime={at} title={exactTime(at)}>
    {(dayOf(at) === day.format(gatewayNow()) ? clock : dayAndClock).format(new Date(at))}
  </time>
);
/** The width of a list's column of `When`, at its longest. */
export const WHEN_WIDTH = "140px";

/** How long something has lasted, ticking. */
export const Since = ({ at }: { readonly at: string }) => {
  const current = useNow();
  return <time dateTime={at}>{duration(Math.max(0, Math.floor((current - Date.parse(at)) / 1_000) * 1_000))}</time>;
};

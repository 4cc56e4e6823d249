// A state as shape, colour and word: each of the three tells it alone.
import { identifierInWords } from "../../../protocol/kit/identifier-words.ts";
import css from "./status.module.css";

export type Tone = "good" | "warn" | "bad" | "busy" | "idle";

const TONES: Readonly<Record<string, Tone>> = {
  online: "good",
  succeeded: "good",
  delivered: "good",
  active: "good",
  accepted: "good",
  paid: "good",
  ok: "good",
  healthy: "good",
  completed: "good",
  resolved: "good",
  verified: "good",
  pending_verification: "warn",
  issuing_certificate: "busy",
  queued: "warn",
  retrying: "warn",
  pending: "warn",
  canceling: "warn",
  cancelling: "warn",
  partially_failed: "warn",
  incomplete: "warn",
  expiring: "warn",
  suspended: "warn",
  degraded: "warn",
  draining: "warn",
  warning: "warn",
  medium: "warn",
  sent: "busy",
  acknowledged: "busy",
  running: "busy",
  in_progress: "busy",
  validating: "busy",
  verifying: "busy",
  failed: "bad",
  failing: "bad",
  exhausted: "bad",
  blocked: "bad",
  error: "bad",
  rejected: "bad",
  timed_out: "bad",
  expired: "bad",
  undeliverable: "bad",
  unhealthy: "bad",
  offline: "bad",
  open: "bad",
  critical: "bad",
  high: "bad",
};
export const toneOf = (status: string): Tone => TONES[status] ?? "idle";

/** The class that gives a tone its color. */
export const toneColor = (tone: Tone): string => css[tone] ?? "";

/** Drawn, because a sign of a font is not the same everywhere. */
const SHAPES: Readonly<Record<Tone, React.ReactNode>> = {
  good: <circle cx="5" cy="5" r="4" fill="currentColor" />,
  warn: <path d="M5 .8 9.6 9H.4z" fill="currentColor" stroke="currentColor" strokeLinejoin="round" />,
  bad: <path d="M1.5 1.5l7 7M8.5 1.5l-7 7" fill="none" stroke="currentColor" strokeWidth="2.2" strokeLinecap="round" />,
  busy: (
    <>
      <path d="M5 1a4 4 0 1 1 0 8z" fill="currentColor" />
      <circle cx="5" cy="5" r="4" fill="none" stroke="currentColor" strokeWidth="1.4" />
    </>
  ),
  idle: <path d="M1 5h8" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />,
};

export const Shape = ({ tone }: { readonly tone: Tone }) => (
  <svg className={css[tone]} width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
    {SHAPES[tone]}
  </svg>
);

export const Status = ({ status, word = identifierInWords(status) }: { readonly status: string; readonly word?: string }) => (
  <span className={`${css["status"]} ${css[toneOf(status)]}`}>
    <Shape tone={toneOf(status)} />
    {word}
  </span>
);

// What went wrong, where it happened, until it is right again: a sentence, the code, the id to give to an operator, and when to try again.
import { isMooringError } from "@mooring/client";
import { useEffect, useState } from "react";
import { gatewayNow } from "./clock.ts";
import { Notice } from "./notice.tsx";
import { clockOf, useNow } from "./time.tsx";

const SENTENCES: Readonly<Record<string, string>> = {
  FORBIDDEN: "Your role does not permit this.",
  RATE_LIMIT_EXCEEDED: "Too many requests.",
};

interface Facts {
  readonly code: string | null;
  readonly sentence: string;
  readonly retryable: boolean;
  readonly retryAfter: number;
  readonly requestId: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

export const factsOf = (error: unknown): Facts => {
  const app = isMooringError(error) ? error.data?.app : undefined;
  if (app !== undefined && isMooringError(error)) {
    const sentence = app.code.endsWith("_NOT_FOUND") ? "Unknown, or not yours." : (SENTENCES[app.code] ?? error.message);
    return { code: app.code, sentence, retryable: app.retryable, retryAfter: app.retryAfter ?? 0, requestId: app.requestId, details: app.details ?? {} };
  }
  return { code: null, sentence: "The gateway did not answer.", retryable: true, retryAfter: 0, requestId: null, details: {} };
};

/** Such as `email: must be an address`. */
const issuesOf = ({ details }: Facts): readonly string[] => {
  const issues = details["issues"];
  if (!Array.isArray(issues)) return [];
  return (issues as { path?: unknown; message?: string }[]).map(({ path, message }) => `${[path].flat().join(".") || "input"}: ${message ?? "is not valid"}`);
};

export interface FailureProps {
  readonly error: unknown;
  readonly retry?: () => void;
  /** Tries by itself, too. */
  readonly again?: boolean;
  /** When what stands below was read; 0 if nothing does. */
  readonly shownFrom?: number;
}
const AGAIN_SECONDS = 10;

export const Failure = ({ error, retry, again = false, shownFrom = 0 }: FailureProps) => {
  const facts = factsOf(error);
  const [failed, setFailed] = useState(() => ({ error, at: gatewayNow() }));
  if (failed.error !== error) setFailed({ error, at: gatewayNow() });
  const now = useNow();
  const secondsTo = (seconds: number): number => Math.ceil((failed.at + 1_000 * seconds - now) / 1_000);
  const waits = secondsTo(facts.retryAfter);
  const triesIn = again && facts.retryable && retry !== undefined ? secondsTo(Math.max(AGAIN_SECONDS, facts.retryAfter)) : null;
  const isDue = triesIn !== null && triesIn <= 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each failure
  useEffect(() => {
    if (isDue) retry?.();
  }, [isDue, failed]);
  return (
    <Notice
      tone="bad"
      role="alert"
      title={facts.sentence}
      actions={
        retry !== undefined && facts.retryable ? (
          <button type="button" data-size="small" onClick={retry} disabled={waits > 0}>
            Try again
          </button>
        ) : undefined
      }
    >
      {facts.code === null ? null : <code>{facts.code}</code>}
      {issuesOf(facts).map((issue) => (
        <p key={issue}>{issue}</p>
      ))}
      {shownFrom > 0 ? <p>What you see is from {clockOf(new Date(shownFrom).toISOString())}.</p> : null}
      {triesIn !== null ? <p>{triesIn > 0 ? `Tries again in ${triesIn} s.` : "Tries again now."}</p> : waits > 0 ? <p>Goes on in {waits} s.</p> : null}
      {facts.requestId === null ? null : <span className="muted mono">{facts.requestId}</span>}
    </Notice>
  );
};

/** That a part of the page could not be read, where it would be. */
export const FailureOf = ({ read: { error, refetch } }: { readonly read: { readonly error: unknown; readonly refetch: () => unknown } }) =>
  error === null ? null : <Failure error={error} retry={() => refetch()} again />;

/** A refusal that the screen expects says what to do; any other failure is shown as it came. */
export const Refusal = ({ sentence, ...failure }: FailureProps & { readonly sentence: string | undefined }) =>
  sentence === undefined ? <Failure {...failure} /> : <p role="alert">{sentence}</p>;

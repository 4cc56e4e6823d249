// What went wrong, where it happened, until it is right again: a sentence, the code, the id to give to an operator, and when to try again.
import { isMooringError } from "@mooring/client";
import { useState } from "react";
import css from "./parts.module.css";
import { useNow } from "./time.tsx";

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
}
export const Failure = ({ error, retry }: FailureProps) => {
  const facts = factsOf(error);
  const [failedAt] = useState(() => Date.now());
  const waits = Math.ceil((failedAt + 1_000 * facts.retryAfter - useNow()) / 1_000);
  return (
    <div className={css["failure"]} role="alert">
      <p>
        <strong>{facts.sentence}</strong> {facts.code === null ? null : <code>{facts.code}</code>}
      </p>
      {issuesOf(facts).map((issue) => (
        <p key={issue}>{issue}</p>
      ))}
      {waits > 0 ? <p>Goes on in {waits} s.</p> : null}
      <div className="row">
        {retry !== undefined && facts.retryable ? (
          <button type="button" onClick={retry} disabled={waits > 0}>
            Try again
          </button>
        ) : null}
        {facts.requestId === null ? null : <span className="muted mono">{facts.requestId}</span>}
      </div>
    </div>
  );
};

/** A refusal that the screen expects says what to do; any other failure is shown as it came. */
export const Refusal = ({ sentence, ...failure }: FailureProps & { readonly sentence: string | undefined }) =>
  sentence === undefined ? <Failure {...failure} /> : <p role="alert">{sentence}</p>;

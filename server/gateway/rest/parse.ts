// Parses an operation's input by its schema; VALIDATION_FAILED names the place of each issue.
import type { z } from "zod";
import type { Operation } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { badInputName, unstorable } from "../../core/rows/storable.ts";

const MAX_ISSUES = 50;

const toIssue = (issue: z.core.$ZodIssue): Record<string, unknown> => ({
  path: issue.path.map((part, index) => (typeof part === "number" ? `[${part}]` : `${index === 0 ? "" : "."}${String(part)}`)).join(""),
  code: issue.code,
  message: issue.message,
  ...("expected" in issue && typeof issue.expected === "string" ? { expected: issue.expected } : {}),
  ...(issue.code === "unrecognized_keys" ? { keys: issue.keys.slice(0, 20) } : {}),
});

const reasonOf = (issues: readonly z.core.$ZodIssue[]): Record<string, unknown> => {
  const params = issues.map((issue) => ("params" in issue ? issue.params : undefined)).find((given) => typeof given?.["reason"] === "string");
  return params === undefined ? {} : { reason: params["reason"] };
};

export const invalid = (path: string, message: string, reason?: string): AppError =>
  new AppError("VALIDATION_FAILED", { details: { ...(reason === undefined ? {} : { reason }), issues: [{ path, code: "custom", message }] } });

/** Throws for a value that PostgreSQL does not accept, and for a field that would get lost. */
export const checkStorable = (raw: unknown): void => {
  const problem = unstorable(raw, badInputName);
  if (problem !== null) throw invalid("", problem, "unstorable");
};

export const parseInput = (op: Operation, raw: unknown): unknown => {
  if (op.otlp !== true) checkStorable(raw);
  const parsed = op.input.safeParse(raw);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  throw new AppError("VALIDATION_FAILED", { details: { ...reasonOf(issues), issues: issues.slice(0, MAX_ISSUES).map(toIssue) } });
};

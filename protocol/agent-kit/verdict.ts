// What a case finds out about an agent.

/** A sentence of the documents that the agent did not do. */
export interface BrokenRule {
  /** The anchor of the sentence. */
  readonly rule: string;
  readonly due: string;
  readonly seen: string;
}

export type CaseVerdict = "pass" | "fail" | "not observable";

export interface CaseResult {
  readonly id: string;
  readonly suite: string;
  readonly title: string;
  readonly verdict: CaseVerdict;
  readonly finding: BrokenRule | null;
  /** What the documents recommend and the agent does not do. */
  readonly hints: readonly BrokenRule[];
  /** Why nothing could be seen. */
  readonly why: string | null;
  readonly ms: number;
}

export class Wrong extends Error {
  override readonly name = "Wrong";
  readonly finding: BrokenRule;

  constructor(finding: BrokenRule) {
    super(`${finding.rule}: ${finding.due}; seen: ${finding.seen}`);
    this.finding = finding;
  }
}

/** This machine, or this agent, does not let the kit look. */
export class NotObservable extends Error {
  override readonly name = "NotObservable";
}

const MOST = 600;
/** Something that was seen, in a line of bounded length. */
export const shown = (what: unknown): string => {
  const text = typeof what === "string" ? what : (JSON.stringify(what) ?? String(what));
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text;
};

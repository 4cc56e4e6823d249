// The way of a command as spans, derived from its history when somebody reads the trace: its wait, each delivery, its run and its end.
import { createHash } from "node:crypto";
import type { CommandHistory } from "../../core/ports/command-history.ts";
import type { StoredSpan } from "./span.ts";

/** What a command did while it had this status. */
const PHASES: ReadonlyMap<string, string> = new Map([
  ["queued", "command queue"],
  ["sent", "command deliver"],
  ["acknowledged", "command run"],
  ["running", "command run"],
  ["canceling", "command cancel"],
]);
const FAILED: ReadonlySet<string> = new Set(["failed", "rejected", "expired", "timed_out", "undeliverable"]);
const INTERNAL = 1;

const derivedId = (commandId: string, part: number): string => createHash("sha256").update(`${commandId} ${part}`).digest("hex").slice(0, 16);
const usOf = (iso: string): number => Date.parse(iso) * 1_000;

interface Part {
  readonly name: string;
  readonly startUs: number;
  readonly endUs: number;
  readonly failed: boolean;
  readonly attributes: StoredSpan["attributes"];
}

/** A status lasts until the next one; several steps may keep it. */
const partsOf = ({ command, steps }: CommandHistory, nowUs: number): readonly Part[] => {
  const changes = steps.filter(({ from, to }) => from !== to);
  return changes.map(({ to, at, attempt, code }, index) => {
    const phase = PHASES.get(to);
    const next = changes[index + 1];
    const startUs = usOf(at);
    return {
      name: phase ?? (command.ackStatus === null ? "command end" : "command ack"),
      startUs,
      endUs: phase === undefined ? startUs : next === undefined ? nowUs : usOf(next.at),
      failed: phase === undefined ? FAILED.has(to) : to === "sent" && next?.to === "queued",
      attributes: { "mooring.command_status": to, "mooring.attempt": attempt, ...(code === null ? {} : { "mooring.code": code }) },
    };
  });
};

const spanOf = (created: StoredSpan, part: Part, { spanId, parentSpanId }: Pick<StoredSpan, "spanId" | "parentSpanId">): StoredSpan => ({
  ...created,
  spanId,
  parentSpanId,
  source: "command",
  name: part.name,
  kind: INTERNAL,
  startUs: part.startUs,
  durationUs: Math.max(0, part.endUs - part.startUs),
  status: part.failed ? 2 : 0,
  statusMessage: null,
  attributes: part.attributes,
});

const CARRIES: readonly string[] = ["command run", "command deliver"];

/** What the device did for the command stands below the step in which it had it. */
const carrierOf = (parts: readonly StoredSpan[], { startUs }: StoredSpan): StoredSpan | undefined => {
  const begun = parts.filter(({ name }) => CARRIES.includes(name));
  return begun.findLast((part) => part.startUs <= startUs) ?? begun[0];
};

/** `created` is the span that was stored when the command was. */
const deriveOne = (created: StoredSpan, history: CommandHistory, nowUs: number): readonly StoredSpan[] => {
  const { command } = history;
  const parts = partsOf(history, nowUs);
  const endUs = Math.max(created.startUs, ...parts.map((part) => part.endUs));
  const whole: Part = {
    name: `command ${command.type}`,
    startUs: created.startUs,
    endUs,
    failed: FAILED.has(command.status),
    attributes: { ...created.attributes, "mooring.command_status": command.status, "mooring.channel": command.channel, "error.type": command.failureCode },
  };
  const steps = parts.map((part, index) => spanOf(created, part, { spanId: derivedId(command.commandId, index), parentSpanId: created.spanId }));
  return [spanOf(created, whole, created), ...steps];
};

/** A device names the call that queued its command as parent; with one command of this call for the device, the command's step is nearer. */
const placed = (span: StoredSpan, derived: ReadonlyMap<string, readonly StoredSpan[] | null>): StoredSpan => {
  const steps = span.source === "sent" && span.deviceId !== null ? derived.get(`${span.parentSpanId} ${span.deviceId}`) : undefined;
  const carrier = steps == null ? undefined : carrierOf(steps, span);
  return carrier === undefined ? span : { ...span, parentSpanId: carrier.spanId };
};

/** Puts the ways of the commands in place of the spans that tell of their creation. */
export const withCommands = (spans: readonly StoredSpan[], histories: readonly CommandHistory[], nowUs: number): readonly StoredSpan[] => {
  const byCommand = new Map(histories.map((history) => [history.command.commandId, history]));
  const steps = new Map<string, readonly StoredSpan[] | null>();
  const whole = spans.flatMap((span) => {
    const history = span.source === "command" && span.commandId !== null ? byCommand.get(span.commandId) : undefined;
    if (history === undefined) return [span];
    const derived = deriveOne(span, history, nowUs);
    const key = `${span.parentSpanId} ${span.deviceId}`;
    steps.set(key, steps.has(key) ? null : derived);
    return derived;
  });
  return whole.map((span) => placed(span, steps)).toSorted((a, b) => a.startUs - b.startUs);
};

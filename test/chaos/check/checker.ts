// Checks a run: compares the history of every id with the gateway's final state.
import { type CommandStatus, isOpen } from "../../../protocol/index.ts";
import type { Line } from "./history.ts";

/** A command as the gateway shows it in the end. */
export interface Fact {
  readonly commandId: string;
  readonly deviceId: string;
  readonly status: CommandStatus;
  readonly failureCode: string | null;
  /** The request that made the command, read from its payload. */
  readonly request: string | null;
}

/** Every list of these must be empty. */
export const VIOLATIONS = ["ok-lost", "ok-unfinished", "never-ran", "ghost", "wrong-device", "reordered", "executed-twice", "queued-twice"] as const;
export type Violation = (typeof VIOLATIONS)[number];

export interface CheckerVerdict {
  /** Requests answered 2xx. */
  readonly accepted: number;
  readonly okOnce: number;
  readonly okMultiDelivered: number;
  readonly unknownApplied: number;
  readonly unknownNotApplied: number;
  readonly refused: number;
  readonly deliveries: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly violations: Readonly<Record<Violation, readonly string[]>>;
}

interface Request {
  readonly deviceId: string;
  phase: "invoke" | "ok" | "fail" | "info";
  commandId: string | null;
}

const requestsOf = (lines: readonly Line[]): ReadonlyMap<string, Request> => {
  const requests = new Map<string, Request>();
  for (const line of lines) {
    if (line.op !== "queue") continue;
    const request = requests.get(line.id);
    if (request) Object.assign(request, { phase: line.phase, commandId: line.commandId ?? null });
    else requests.set(line.id, { deviceId: line.actor, phase: line.phase, commandId: line.commandId ?? null });
  }
  return requests;
};

/** Counts deliveries and executions per id, and collects commands on the wrong device or in the wrong order. */
const watchAgents = (lines: readonly Line[]) => {
  const delivered = new Map<string, number>();
  const executed = new Map<string, number>();
  const lastSeq = new Map<string, number>();
  const wrongDevice = new Set<string>();
  const reordered = new Set<string>();
  for (const line of lines) {
    if (line.op === "execute") executed.set(line.id, (executed.get(line.id) ?? 0) + 1);
    if (line.op !== "deliver") continue;
    if (line.target !== null && line.target !== line.actor) wrongDevice.add(line.id);
    const known = delivered.get(line.id) ?? 0;
    delivered.set(line.id, known + 1);
    if (known > 0) continue;
    // Only first deliveries must keep the order; a redelivery may come late.
    const lane = `${line.actor} ${line.lane}`;
    if (line.seq < (lastSeq.get(lane) ?? -1)) reordered.add(line.id);
    else lastSeq.set(lane, line.seq);
  }
  return { delivered, executed, wrongDevice, reordered };
};

const DONE: readonly CommandStatus[] = ["succeeded"];

const judgeFacts = (facts: ReadonlyMap<string, Fact>, requests: ReadonlyMap<string, Request>, executed: ReadonlyMap<string, number>) => {
  const [ghost, neverRan, queuedTwice, applied]: [string[], string[], string[], Map<string, string>] = [[], [], [], new Map()];
  for (const { commandId, request, deviceId, status } of facts.values()) {
    const asked = request === null ? undefined : requests.get(request);
    if (!asked || asked.phase === "fail" || asked.deviceId !== deviceId) ghost.push(commandId);
    if (request !== null && applied.has(request)) queuedTwice.push(commandId);
    if (request !== null) applied.set(request, commandId);
    if (DONE.includes(status) && !executed.has(commandId)) neverRan.push(commandId);
  }
  return { ghost, neverRan, queuedTwice, applied };
};

const countStatuses = (truth: readonly Fact[]): Readonly<Record<string, number>> => {
  const byStatus: Record<string, number> = {};
  for (const { status, failureCode } of truth) {
    const name = failureCode === null ? status : `${status} ${failureCode}`;
    byStatus[name] = (byStatus[name] ?? 0) + 1;
  }
  return byStatus;
};

export const checkHistory = (lines: readonly Line[], truth: readonly Fact[]): CheckerVerdict => {
  const requests = requestsOf(lines);
  const facts = new Map(truth.map((fact) => [fact.commandId, fact]));
  const { delivered, executed, wrongDevice, reordered } = watchAgents(lines);
  const { ghost, neverRan, queuedTwice, applied } = judgeFacts(facts, requests, executed);
  const counts = { accepted: 0, okOnce: 0, okMultiDelivered: 0, unknownApplied: 0, unknownNotApplied: 0, refused: 0 };
  const [lost, unfinished]: [string[], string[]] = [[], []];
  for (const [id, { phase, commandId }] of requests) {
    if (phase === "fail") counts.refused += 1;
    if (phase === "info" || phase === "invoke") counts[applied.has(id) ? "unknownApplied" : "unknownNotApplied"] += 1;
    if (phase !== "ok") continue;
    counts.accepted += 1;
    // A caller that got its 2xx before the command had an id knows only the request.
    const fact = facts.get(commandId ?? applied.get(id) ?? "");
    if (!fact) lost.push(commandId ?? id);
    else if (isOpen(fact.status)) unfinished.push(fact.commandId);
    else counts[(delivered.get(fact.commandId) ?? 0) > 1 ? "okMultiDelivered" : "okOnce"] += 1;
  }
  return {
    ...counts,
    deliveries: [...delivered.values()].reduce((sum, count) => sum + count, 0),
    byStatus: countStatuses(truth),
    violations: {
      "ok-lost": lost,
      "ok-unfinished": unfinished,
      "never-ran": neverRan,
      ghost,
      "wrong-device": [...wrongDevice],
      reordered: [...reordered],
      "executed-twice": [...executed].filter(([, count]) => count > 1).map(([id]) => id),
      "queued-twice": queuedTwice,
    },
  };
};

/** Counts commands that reached their agent later than this after their 2xx, or never. */
export const lateDeliveries = (lines: readonly Line[], withinMs: number): { readonly late: number; readonly longestMs: number } => {
  const firstMs = new Map<string, number>();
  for (const { op, id, tMs } of lines) if (op === "deliver" && !firstMs.has(id)) firstMs.set(id, tMs);
  let [late, longestMs] = [0, 0];
  for (const line of lines) {
    if (line.op !== "queue" || line.phase !== "ok" || line.commandId === undefined) continue;
    const reachedMs = firstMs.get(line.commandId);
    if (reachedMs === undefined || reachedMs - line.tMs > withinMs) late += 1;
    longestMs = Math.max(longestMs, (reachedMs ?? line.tMs) - line.tMs);
  }
  return { late, longestMs: Math.round(longestMs) };
};

export interface Gap {
  readonly fromMs: number;
  readonly toMs: number;
}
/** An answer in transit when the gap begins may still arrive. */
const ON_ITS_WAY_MS = 100;
/** Counts requests that got 2xx while nothing could be stored. */
export const yesInGap = (lines: readonly Line[], gaps: readonly Gap[]): number =>
  lines.filter(({ op, phase, tMs }) => op === "queue" && phase === "ok" && gaps.some(({ fromMs, toMs }) => tMs > fromMs + ON_ITS_WAY_MS && tMs < toMs)).length;

export const countViolations = ({ violations }: CheckerVerdict, kinds: readonly Violation[] = VIOLATIONS): number =>
  kinds.reduce((sum, kind) => sum + violations[kind].length, 0);

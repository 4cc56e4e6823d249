// The state table of commands, row by row, and the invariants that hold for every row whatever happens to it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ACK_STATUSES, type AckStatus, type CommandStatus, isOpen } from "../../../protocol/index.ts";
import { decide, reconcile } from "../../../server/features/commands/rules.ts";
import { ackResult } from "../../../server/features/commands/rules-ack.ts";
import { defaultSettings } from "../../../server/features/commands/settings.ts";
import type { AckEvent, Circumstances, CommandEvent, CommandFacts } from "../../../server/features/commands/state.ts";
import { SEED } from "../../kit/gateway/seed.ts";

const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const at: Circumstances = { now: NOW, jitter: 0.5, timings: defaultSettings };

const queued: CommandFacts = {
  status: "queued",
  deadlineAt: NOW + 24 * HOUR,
  availableAt: NOW - SECOND,
  attempt: 0,
  execDeadlineAt: null,
  channel: null,
  sessionEpoch: null,
  nodeId: null,
  sentAt: null,
  ackedAt: null,
  startedAt: null,
  finishedAt: null,
  ackStatus: null,
  ackAt: null,
  output: null,
  outputTruncated: false,
  progress: null,
  failureCode: null,
  cancelRequestedAt: null,
  cancelReason: null,
  cancelPrevStatus: null,
  late: false,
  lateOutcome: null,
  requiresAck: true,
  redeliverSafe: true,
  maxAttempts: 10,
  execTimeoutSeconds: 900,
  expiresAt: NOW + 24 * HOUR,
  liveEpoch: 3,
};
const sent: CommandFacts = { ...queued, status: "sent", attempt: 1, channel: "ws", sessionEpoch: 3, nodeId: "n", sentAt: NOW, deadlineAt: NOW + 20 * SECOND };
const due = { deadlineAt: NOW };
const acknowledged: CommandFacts = { ...sent, status: "acknowledged", ackedAt: NOW, execDeadlineAt: NOW + 900 * SECOND, deadlineAt: NOW + 900 * SECOND };
const running: CommandFacts = { ...acknowledged, status: "running", startedAt: NOW };
const canceling: CommandFacts = { ...running, status: "canceling", cancelPrevStatus: "running", cancelRequestedAt: NOW, deadlineAt: NOW + 60 * SECOND };
const ended = (status: CommandStatus, agoMs = 0): CommandFacts => ({ ...sent, status, deadlineAt: null, finishedAt: NOW - agoMs });

const ack = (word: AckStatus, more: Partial<AckEvent> = {}): AckEvent => ({
  kind: "ack",
  word,
  raw: word,
  output: undefined,
  outputTruncated: false,
  code: null,
  progress: null,
  refused: null,
  ...more,
});
const deadline: CommandEvent = { kind: "deadline" };
const cancel: CommandEvent = { kind: "cancel", reason: null, force: false, settled: { epoch: 3 } };
const force: CommandEvent = { kind: "cancel", reason: "now", force: true, settled: null };
const reset: CommandEvent = { kind: "reset", reason: "paired anew" };
const settled = (more: Partial<Extract<CommandEvent, { kind: "settled" }>> = {}): CommandEvent => ({
  kind: "settled",
  epoch: 4,
  listedAs: null,
  journal: true,
  listsAll: true,
  cancels: true,
  handoff: false,
  ...more,
});

type Row = [name: string, row: CommandFacts, event: CommandEvent, expected: Partial<CommandFacts> | null];

const TABLE: readonly Row[] = [
  [
    "T2 claimed for a socket",
    queued,
    { kind: "claimed", channel: "ws", epoch: 3, nodeId: "n" },
    { status: "sent", attempt: 1, sessionEpoch: 3, deadlineAt: NOW + 20 * SECOND },
  ],
  ["T2 not before it is due", { ...queued, availableAt: NOW + 1 }, { kind: "claimed", channel: "ws", epoch: 3, nodeId: "n" }, null],
  [
    "T2 the deadline is no later than its expiry",
    { ...queued, expiresAt: NOW + SECOND },
    { kind: "claimed", channel: "ws", epoch: 3, nodeId: "n" },
    { deadlineAt: NOW + SECOND },
  ],
  [
    "T3 claimed by poll",
    queued,
    { kind: "claimed", channel: "poll", epoch: null, nodeId: "n" },
    { status: "sent", channel: "poll", deadlineAt: NOW + 60 * SECOND },
  ],
  ["T4 write refused", sent, { kind: "refused", epoch: 3 }, { status: "queued", attempt: 0, availableAt: NOW, deadlineAt: NOW + 24 * HOUR }],
  ["T4 a refusal by another session changes nothing", sent, { kind: "refused", epoch: 2 }, null],
  ["T5 written, asks for no ack", { ...sent, requiresAck: false }, { kind: "written", epoch: 3 }, { status: "delivered", deadlineAt: null, finishedAt: NOW }],
  ["T5 a write does not end a command that asks for an ack", sent, { kind: "written", epoch: 3 }, null],
  ["T5 an unrequested ack proves the delivery", { ...sent, requiresAck: false }, ack("failed"), { status: "delivered", ackStatus: null }],
  [
    "T5 being listed in a hello proves the delivery",
    { ...sent, requiresAck: false },
    settled({ listedAs: "running" }),
    { status: "delivered", failureCode: null },
  ],
  ["T6 received", sent, ack("received"), { status: "acknowledged", ackedAt: NOW, deadlineAt: NOW + 900 * SECOND, execDeadlineAt: NOW + 900 * SECOND }],
  ["T6 received after it went back to the queue", { ...queued, attempt: 1 }, ack("received"), { status: "acknowledged" }],
  ["T7 running from sent", sent, ack("running"), { status: "running", startedAt: NOW, deadlineAt: NOW + 900 * SECOND }],
  ["T7 running keeps the execution deadline", { ...acknowledged, execDeadlineAt: NOW + 5 }, ack("running"), { status: "running", deadlineAt: NOW + 5 }],
  [
    "T8 progress",
    running,
    ack("running", { progress: { pct: 40, message: null } }),
    { status: "running", progress: { pct: 40, message: null }, deadlineAt: NOW + 900 * SECOND },
  ],
  [
    "T9 succeeded without received",
    sent,
    ack("succeeded", { output: { ok: 1 } }),
    { status: "succeeded", finishedAt: NOW, output: { ok: 1 }, deadlineAt: null, failureCode: null },
  ],
  ["T9 failed", acknowledged, ack("failed"), { status: "failed", failureCode: "AGENT_FAILED" }],
  ["T9 timed out on the agent", running, ack("failed", { raw: "timed_out" }), { status: "failed", failureCode: "AGENT_TIMEOUT" }],
  ["T9 rejected with a code", running, ack("rejected", { code: "EXPIRED" }), { status: "rejected", failureCode: "EXPIRED" }],
  ["T10 unacknowledged", { ...sent, ...due }, deadline, { status: "queued", attempt: 1, availableAt: NOW + 20 * SECOND, deadlineAt: NOW + 24 * HOUR }],
  ["T10 stays with the live session that received it", { ...sent, ...due }, deadline, { status: "queued", sessionEpoch: 3 }],
  ["T10 belongs to no session once that one is gone", { ...sent, ...due, liveEpoch: 4 }, deadline, { status: "queued", sessionEpoch: null }],
  ["T10 later attempts wait longer", { ...sent, ...due, attempt: 4 }, deadline, { availableAt: NOW + 160 * SECOND }],
  ["T10 a polled command is due again at once", { ...sent, ...due, channel: "poll" }, deadline, { status: "queued", availableAt: NOW }],
  ["T10 an unsafe command waits for the next hello", { ...sent, ...due, redeliverSafe: false, liveEpoch: null }, deadline, { deadlineAt: NOW + 24 * HOUR }],
  ["T10 an unsafe command is repeated to the session that received it", { ...sent, ...due, redeliverSafe: false }, deadline, { status: "queued" }],
  ["T11 not listed", sent, settled(), { status: "queued", availableAt: NOW }],
  ["T11 listed", sent, settled({ listedAs: "received" }), { status: "acknowledged" }],
  ["T11 listed as finished is acknowledged: its result follows", sent, settled({ listedAs: "succeeded" }), { status: "acknowledged" }],
  ["T11 listed, though it went back to the queue", { ...queued, attempt: 1 }, settled({ listedAs: "running" }), { status: "running" }],
  ["T11 handed over", sent, settled({ handoff: true }), { sessionEpoch: 4 }],
  ["T11 leaves a polled command alone", { ...sent, channel: "poll", sessionEpoch: null }, settled(), null],
  ["T12 attempts used up", { ...sent, ...due, attempt: 10 }, deadline, { status: "undeliverable", failureCode: "DELIVERY_ATTEMPTS_EXCEEDED" }],
  [
    "T13 session lost, unsafe, no journal",
    { ...sent, redeliverSafe: false },
    settled({ journal: false }),
    { status: "undeliverable", failureCode: "DELIVERY_UNKNOWN" },
  ],
  ["T13 with a journal, an unsafe command is queued again", { ...sent, redeliverSafe: false }, settled(), { status: "queued" }],
  ["T14 expired in the queue", { ...queued, ...due, expiresAt: NOW }, deadline, { status: "expired", failureCode: "EXPIRED_BEFORE_DELIVERY" }],
  ["T14 expired unacknowledged", { ...sent, ...due, expiresAt: NOW }, deadline, { status: "expired", failureCode: "EXPIRED_UNACKED" }],
  ["T15 acknowledged, out of time", { ...acknowledged, ...due }, deadline, { status: "timed_out", deadlineAt: null }],
  ["T15 running, out of time", { ...running, ...due }, deadline, { status: "timed_out" }],
  ["T16 cancelled in the queue", queued, cancel, { status: "canceled", finishedAt: NOW, failureCode: null }],
  [
    "T17 in the queue, perhaps sent: its session is not the one that was asked",
    queued,
    { ...cancel, settled: { epoch: 2 } },
    { status: "canceling", cancelPrevStatus: "sent" },
  ],
  [
    "T17 in the queue, perhaps sent: its node did not answer",
    queued,
    { ...cancel, settled: null },
    { status: "canceling", cancelPrevStatus: "sent", attempt: 1, sessionEpoch: 3, sentAt: NOW },
  ],
  ["T16 in the queue, and never sent before it is written", { ...queued, redeliverSafe: false }, { ...cancel, settled: null }, { status: "canceled" }],
  ["T17 cancelled when sent", sent, cancel, { status: "canceling", cancelPrevStatus: "sent", deadlineAt: NOW + 60 * SECOND }],
  ["T17 cancelled when running", running, cancel, { status: "canceling", cancelPrevStatus: "running" }],
  ["T17 an absent agent has until the command expires", { ...running, liveEpoch: null }, cancel, { status: "canceling", deadlineAt: NOW + 24 * HOUR }],
  ["T17 the next hello starts the usual time", { ...canceling, deadlineAt: NOW + 24 * HOUR }, settled(), { deadlineAt: NOW + 60 * SECOND }],
  ["T17 a second cancel changes nothing", canceling, cancel, null],
  [
    "T19 the work continues after the hello of an agent that cannot cancel",
    canceling,
    settled({ cancels: false }),
    { status: "running", cancelPrevStatus: null },
  ],
  [
    "T21 after the hello of an agent that cannot cancel, a command that it may not have is not delivered again",
    { ...canceling, cancelPrevStatus: "sent" },
    settled({ cancels: false }),
    { status: "canceled", failureCode: "CANCEL_UNCONFIRMED" },
  ],
  ["T18 confirmed", canceling, ack("canceled"), { status: "canceled", failureCode: null }],
  ["T19 refused", canceling, ack("cancel_rejected"), { status: "running", deadlineAt: NOW + 900 * SECOND, cancelPrevStatus: null }],
  ["T20 finished first", canceling, ack("succeeded"), { status: "succeeded" }],
  ["T20 failed first", canceling, ack("failed"), { status: "failed" }],
  ["T21 unconfirmed", { ...canceling, ...due }, deadline, { status: "canceled", failureCode: "CANCEL_UNCONFIRMED" }],
  ["T21 forced", running, force, { status: "canceled", failureCode: "CANCEL_UNCONFIRMED", cancelReason: "now" }],
  ["T21 forced while asking", canceling, force, { status: "canceled" }],
  ...(["expired", "timed_out", "undeliverable"] as const).flatMap((status): Row[] => [
    [`T22 late success after ${status}`, ended(status, HOUR), ack("succeeded"), { status: "succeeded", late: true, failureCode: null }],
    [
      `T22 too late after ${status}`,
      ended(status, 25 * HOUR),
      ack("succeeded"),
      { lateOutcome: { status: "succeeded", output: null, outputTruncated: false, code: null, at: new Date(NOW).toISOString() } },
    ],
  ]),
  [
    "T23 an outcome after the cancellation is kept beside it",
    ended("canceled"),
    ack("succeeded", { output: 7 }),
    { lateOutcome: { status: "succeeded", output: 7, outputTruncated: false, code: null, at: new Date(NOW).toISOString() } },
  ],
  ...[queued, sent, acknowledged, running, canceling].map(
    (row): Row => [`T24 reset when ${row.status}`, row, reset, { status: "canceled", failureCode: "DEVICE_RESET" }],
  ),
  ["T25 forgotten", running, settled(), { status: "queued", availableAt: NOW, startedAt: null, execDeadlineAt: null }],
  ["T25 forgotten and unsafe", { ...acknowledged, redeliverSafe: false }, settled(), { status: "failed", failureCode: "AGENT_LOST_STATE" }],
  ["T25 an agent that does not list everything has lost nothing", running, settled({ listsAll: false }), null],
  ["T25 nor has it lost an unsafe command that it acknowledged", { ...acknowledged, redeliverSafe: false }, settled({ listsAll: false, journal: false }), null],
  ["T25 forgotten at its last attempt", { ...running, attempt: 10 }, settled(), { status: "failed" }],
  ["T26 the same outcome again changes nothing", ended("succeeded"), ack("succeeded"), null],
  ["T26 another outcome changes nothing: the first wins", ended("succeeded"), ack("failed"), null],
  ["received after running changes nothing", running, ack("received"), null],
  ["received after the end changes nothing", ended("failed"), ack("received"), null],
  ["the reaper changes nothing before the deadline", running, deadline, null],
];

describe("state table", () => {
  test.each(TABLE)("%s", (_, row, event, expected) => {
    const step = decide(row, event, at);
    if (expected === null) expect(step).toBeNull();
    else expect({ ...row, ...step?.patch }).toMatchObject(expected);
  });

  test("an ack's answer says what the ack did", () => {
    const answer = (row: CommandFacts, event: AckEvent) => ackResult(row, event, decide(row, event, at));
    expect(answer(sent, ack("received"))).toBe("applied");
    expect(answer(running, ack("received"))).toBe("duplicate");
    expect(answer(ended("succeeded"), ack("succeeded"))).toBe("duplicate");
    expect(answer(ended("succeeded"), ack("failed"))).toBe("conflict");
    expect(answer(ended("timed_out"), ack("failed"))).toBe("applied");
    expect(answer(ended("canceled"), ack("succeeded"))).toBe("conflict");
    expect(answer({ ...sent, requiresAck: false }, ack("succeeded"))).toBe("duplicate");
    expect(answer({ ...ended("delivered"), requiresAck: false }, ack("failed"))).toBe("duplicate");
    expect(answer(sent, ack("succeeded", { refused: "VALIDATION_FAILED" }))).toBe("refused");
    expect(answer(ended("failed"), ack("received", { refused: "ACK_STATUS_UNKNOWN" }))).toBe("refused");
  });

  test("hello tells an agent to continue open commands, stop cancelled ones and forget ended ones", () => {
    expect(reconcile(running, "running", at)).toBe("continue");
    expect(reconcile(canceling, "running", at)).toBe("stop");
    expect(reconcile(ended("canceled"), "running", at)).toBe("stop");
    expect(reconcile(ended("succeeded"), "succeeded", at)).toBe("forget");
    expect(reconcile(null, "running", at)).toBe("forget");
    expect(reconcile(ended("timed_out"), "running", at)).toBe("stop");
    expect(reconcile(ended("timed_out"), "succeeded", at)).toBe("continue");
  });
});

const word = fc.constantFrom(...ACK_STATUSES);
const eventArb: fc.Arbitrary<CommandEvent> = fc.oneof(
  fc.record({
    kind: fc.constant("claimed" as const),
    channel: fc.constantFrom("ws" as const, "poll" as const),
    epoch: fc.integer({ min: 1, max: 5 }),
    nodeId: fc.constant("n"),
  }),
  fc.record({ kind: fc.constant("refused" as const), epoch: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ kind: fc.constant("written" as const), epoch: fc.option(fc.integer({ min: 1, max: 5 })) }),
  word.chain((each) =>
    fc.record({
      kind: fc.constant("ack" as const),
      word: fc.constant(each),
      raw: fc.constant(each),
      output: fc.jsonValue(),
      outputTruncated: fc.boolean(),
      code: fc.constant(null),
      progress: fc.option(fc.constant({ pct: 1, message: null })),
      refused: fc.constantFrom(null, null, "VALIDATION_FAILED"),
    }),
  ),
  fc.constant(deadline),
  fc.record({
    kind: fc.constant("settled" as const),
    epoch: fc.integer({ min: 1, max: 6 }),
    listedAs: fc.option(word),
    journal: fc.boolean(),
    listsAll: fc.boolean(),
    cancels: fc.boolean(),
    handoff: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("cancel" as const),
    reason: fc.constant(null),
    force: fc.boolean(),
    settled: fc.option(fc.record({ epoch: fc.option(fc.integer({ min: 1, max: 6 })) })),
  }),
  fc.constant(reset),
);
const lifeArb = fc.record({
  row: fc
    .record({
      requiresAck: fc.boolean(),
      redeliverSafe: fc.boolean(),
      maxAttempts: fc.integer({ min: 1, max: 3 }),
      expiresAt: fc.option(fc.constant(NOW + HOUR)),
      liveEpoch: fc.option(fc.integer({ min: 1, max: 5 })),
    })
    .map((facts): CommandFacts => ({ ...queued, ...facts, deadlineAt: facts.expiresAt ?? Infinity })),
  steps: fc.array(
    fc.record({
      event: eventArb,
      afterMs: fc.constantFrom(0, SECOND, 30 * SECOND, 20 * 60 * SECOND, 2 * HOUR, 30 * HOUR),
      jitter: fc.double({ min: 0, max: 0.999, noNaN: true }),
    }),
    { maxLength: 25 },
  ),
});

const RANK: Partial<Record<CommandStatus, number>> = { queued: 0, sent: 1, acknowledged: 2, running: 3 };

describe("invariants", () => {
  test(`an open command has a deadline, an outcome is final unless a late result replaces it, and acks never lead back (seed ${SEED})`, () => {
    fc.assert(
      fc.property(lifeArb, ({ row, steps }) => {
        let current = row;
        let now = NOW;
        for (const { event, afterMs, jitter } of steps) {
          now += afterMs;
          const step = decide(current, event, { now, jitter, timings: defaultSettings });
          if (step === null) continue;
          const next = { ...current, ...step.patch };
          if (isOpen(next.status)) expect(next.deadlineAt, "an open state has a deadline").not.toBeNull();
          else expect(next.finishedAt, "an end has its time").not.toBeNull();
          if (!isOpen(current.status) && next.status !== current.status) {
            expect(["expired", "timed_out", "undeliverable"]).toContain(current.status);
            expect(next.late && !current.late && event.kind === "ack" && now - (current.finishedAt ?? 0) <= 24 * HOUR).toBe(true);
          }
          const [before, after] = [RANK[current.status], RANK[next.status]];
          if (event.kind === "ack" && before !== undefined && after !== undefined) expect(after).toBeGreaterThanOrEqual(before);
          if (next.status === "queued" && isOpen(current.status)) expect(next.attempt).toBeLessThan(next.maxAttempts);
          expect(next.attempt).toBeLessThanOrEqual(next.maxAttempts);
          current = next;
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test(`time alone ends every command that expires (seed ${SEED})`, () => {
    fc.assert(
      fc.property(lifeArb, ({ row, steps }) => {
        const bounded = { ...row, expiresAt: row.expiresAt ?? NOW + HOUR };
        let current: CommandFacts = { ...bounded, deadlineAt: bounded.expiresAt };
        for (const { event } of steps) current = { ...current, ...decide(current, event, at)?.patch };
        let now = NOW;
        for (let round = 0; round < 50 && isOpen(current.status); round += 1) {
          now = Math.max(now, current.deadlineAt ?? now);
          current = { ...current, ...decide(current, deadline, { ...at, now })?.patch };
        }
        expect(isOpen(current.status)).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });
});

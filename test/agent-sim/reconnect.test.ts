// When an agent comes back, and when it does not: the tables of protocol/README.md sections 3 and 7.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRandom } from "../../agent-sim/random.ts";
import { afterEnd, backoffMs, type Circumstances, type End, retryAfterOf } from "../../agent-sim/reconnect.ts";
import { CLOSE } from "../../protocol/index.ts";

const times = { firstWindowMs: 20_000, baseMs: 1_000, capMs: 300_000, stableAfterSec: 60 };
const now: Circumstances = { attempt: 0, times, pollMs: 30_000, drainMs: null, superseded: 0, corrected: false, hasAnother: false, random: () => 0.5 };
const closed = (code: number, reason = "", wasReady = true): End => ({ kind: "closed", code, reason, wasReady });
const refused = (status: number, reason = "", more: { code?: string; retryAfterSec?: number } = {}): End => ({
  kind: "refused",
  status,
  reason,
  code: more.code ?? "",
  retryAfterSec: more.retryAfterSec ?? null,
  serverTimeMs: null,
});

test("backoff is random between nothing and the smaller of cap and base · 2^n", () => {
  fc.assert(
    fc.property(fc.nat(2_000), fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 600_000 }), fc.nat(), (attempt, baseMs, capMs, seed) => {
      const wait = backoffMs(attempt, { ...times, baseMs, capMs }, createRandom(seed));
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThanOrEqual(Math.min(capMs, baseMs * 2 ** attempt));
    }),
  );
});
test("backoff uses its whole range, so that agents do not meet again", () => {
  const random = createRandom(1);
  const waits = Array.from({ length: 1_000 }, () => backoffMs(3, times, random));
  expect(Math.min(...waits)).toBeLessThan(800);
  expect(Math.max(...waits)).toBeGreaterThan(7_200);
});

describe("after a close", () => {
  // [code, reason, circumstances, least wait, most wait] with random() from 0 to 1; null: does not come back by itself.
  const table: readonly (readonly [number, string, Partial<Circumstances>, number | null, number | null])[] = [
    [1006, "", {}, 0, 20_000],
    [1006, "", { attempt: 3 }, 0, 8_000],
    [1001, "", {}, 0, 20_000],
    [1012, "drain", { drainMs: 3_200 }, 3_200, 3_200],
    [1012, "drain", {}, 0, 20_000],
    [1013, "try_later;ra=7", {}, 7_000, 9_750],
    [1013, "try_later", { attempt: 2 }, 0, 4_000],
    [4000, "protocol_error", {}, 30_000, 31_000],
    [4001, "hello_timeout", {}, 0, 1_000],
    [4002, "heartbeat_timeout", { attempt: 1 }, 0, 2_000],
    [4008, "slow_consumer", {}, 0, 1_000],
    [4009, "superseded", { superseded: 2 }, 30_000, 60_000],
    [4009, "superseded", { superseded: 3 }, 900_000, 900_000],
    [4013, "frame_too_big", {}, 0, 1_000],
    [4029, "rate_limited;ra=2", {}, 2_000, 3_500],
    [4031, "session_expired", {}, 0, 10_000],
    [4032, "secret_rotated", {}, 0, 0],
    [4032, "secret_rotated", { attempt: 4 }, 0, 16_000],
    [4040, "server_error", { attempt: 20 }, 0, 300_000],
    [4123, "new_code", {}, 0, 1_000],
    [4500, "auth_failed", {}, null, null],
    [4501, "device_revoked", {}, null, null],
    [4503, "tenant_suspended", {}, null, null],
    [4504, "protocol_unsupported", {}, null, null],
    [4505, "duplicate_identity", {}, 900_000, 900_000],
    [4777, "new_code", {}, null, null],
  ];
  test.each(table)("%i %s %o: from %s to %s ms", (...[code, reason, differences, least, most]) => {
    const at = (value: number): number | null => afterEnd(closed(code, reason), { ...now, ...differences, random: () => value }).reconnectInMs;
    expect(at(0)).toBe(least);
    expect(at(1)).toBe(most);
  });
  test("every close code of the protocol has a row", () => {
    const seen = new Set(table.map(([code]) => code));
    expect(
      Object.values(CLOSE)
        .map(({ code }) => code)
        .filter((code) => code !== 1000 && !seen.has(code)),
    ).toEqual([]);
  });
  test.each([
    [4500, 300_000, true],
    [4501, null, false],
    [4503, 3_600_000, true],
    [4504, 30_000, false],
    [1006, 30_000, false],
  ])("%i: REST is asked every %s ms; an answer brings it back: %s", (code, pollEveryMs, revivedByPoll) =>
    expect(afterEnd(closed(code), now)).toMatchObject({ pollEveryMs, revivedByPoll }),
  );
  test("only a slow consumer takes less at a time", () => {
    expect(afterEnd(closed(4008), now).halveInFlight).toBe(true);
    expect(afterEnd(closed(4040), now).halveInFlight).toBe(false);
  });
});

describe("after a refused upgrade", () => {
  test.each([
    [refused(429, "", { retryAfterSec: 6 }), {}, 6_000, 8_500],
    [refused(503, "", { retryAfterSec: 2 }), {}, 2_000, 3_500],
    [refused(503), { attempt: 2 }, 0, 4_000],
    [refused(500), {}, 0, 1_000],
    [refused(401, "replayed"), {}, 0, 1_000],
    [refused(401, "timestamp_skew"), { corrected: true }, 0, 0],
    [refused(401, "timestamp_skew"), { corrected: true, attempt: 1 }, 0, 2_000],
    [refused(401, "timestamp_skew"), {}, 0, 1_000],
    [refused(401, "bad_signature"), {}, null, null],
    [refused(401, "unknown_agent"), {}, null, null],
    [refused(403, "device_revoked"), {}, null, null],
    [refused(403, "", { code: "TENANT_SUSPENDED" }), {}, null, null],
    [refused(426), {}, null, null],
  ] as const)("%o %o: from %s to %s ms", (end, differences, least, most) => {
    const at = (value: number): number | null => afterEnd(end, { ...now, ...differences, random: () => value }).reconnectInMs;
    expect(at(0)).toBe(least);
    expect(at(1)).toBe(most);
  });
  test("an agent that is not believed keeps asking for the reason", () =>
    expect(afterEnd(refused(401, "bad_signature"), now)).toMatchObject({ pollEveryMs: 300_000, revivedByPoll: true }));
});

test.each([
  ["try_later;ra=5", 5],
  ["rate_limited;ra=0", 0],
  ["try_later", null],
  ["", null],
  ["x;ra=soon", null],
  ["x;ra=99999999", null],
])("reason %j asks for %s seconds", (reason, seconds) => expect(retryAfterOf(reason)).toBe(seconds));

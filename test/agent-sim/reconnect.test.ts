// When an agent reconnects and when it does not: the three rules of protocol/README.md.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRandom } from "../../agent-sim/agent/index.ts";
import { afterEnd, backoffMs, type ReconnectContext, type SessionEnd, waitInReason } from "../../agent-sim/agent/reconnect.ts";

const times = { firstWindowMs: 20_000, baseMs: 1_000, capMs: 300_000, stableAfterSec: 60 };
const now: ReconnectContext = {
  attempt: 0,
  times,
  pollMs: 30_000,
  drainWaitMs: null,
  corrected: false,
  correctedBefore: false,
  hasAnother: false,
  random: () => 0.5,
};
const closed = (code: number, reason = "", wasReady = true): SessionEnd => ({ kind: "closed", code, reason, wasReady });
const foreign: SessionEnd = { kind: "closed", code: 1006, reason: "", wasReady: false, isForeign: true };
const refused = (status: number, reason = "", more: { code?: string; retryAfterMs?: number } = {}): SessionEnd => ({
  kind: "refused",
  status,
  reason,
  code: more.code ?? "",
  retryAfterMs: more.retryAfterMs ?? null,
  serverTimeMs: null,
});
/** The shortest and the longest wait for an end. */
const range = (end: SessionEnd, differences: Partial<ReconnectContext> = {}): readonly (number | null)[] =>
  [0, 1].map((value) => afterEnd(end, { ...now, ...differences, random: () => value }).reconnectInMs).map((ms) => (ms === null ? null : Math.round(ms)));

test("backoff is random between zero and the smaller of cap and base · 2^n", () => {
  fc.assert(
    fc.property(fc.nat(2_000), fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 600_000 }), fc.nat(), (attempt, baseMs, capMs, seed) => {
      const wait = backoffMs(attempt, { ...times, baseMs, capMs }, createRandom(seed));
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThanOrEqual(Math.min(capMs, baseMs * 2 ** attempt));
    }),
  );
});
test("backoff uses its whole range, so that agents do not reconnect together", () => {
  const random = createRandom(1);
  const waits = Array.from({ length: 1_000 }, () => backoffMs(3, times, random));
  expect(Math.min(...waits)).toBeLessThan(800);
  expect(Math.max(...waits)).toBeGreaterThan(7_200);
});

describe("backoff", () => {
  // [end, circumstances, shortest wait, longest wait] for random() from 0 to 1; null: the agent does not reconnect by itself.
  test.each<readonly [SessionEnd, Partial<ReconnectContext>, number | null, number | null]>([
    [closed(1006), {}, 0, 20_000],
    [closed(1006), { attempt: 3 }, 0, 8_000],
    [closed(1000), {}, 0, 20_000],
    [closed(4002, "heartbeat_timeout"), { attempt: 1 }, 0, 2_000],
    [foreign, { attempt: 1 }, 0, 20_000],
    [foreign, { attempt: 6 }, 0, 64_000],
    [closed(4123, "a_new_reason", false), {}, 0, 1_000],
    [closed(4040, "server_error"), { attempt: 20 }, 0, 300_000],
    [refused(500), {}, 0, 1_000],
    [refused(503), { attempt: 2 }, 0, 4_000],
    [refused(502), { attempt: 1 }, 0, 2_000],
  ])("after %o %o the agent waits %s to %s ms: a ready session spreads its first attempt over the window", (end, differences, least, most) =>
    expect(range(end, differences)).toEqual([least, most]),
  );
  test.each([
    closed(4500, "auth_failed"),
    closed(4501, "device_revoked"),
    closed(4999, "a_new_reason"),
    refused(400),
    refused(401, "bad_signature"),
    refused(401, "replayed"),
    refused(403, "device_revoked"),
    refused(404),
    refused(426),
  ])("after %o the agent stops, asks REST, and reconnects once REST answers", (end) =>
    expect(afterEnd(end, now)).toMatchObject({
      reconnectInMs: null,
      pollEveryMs: 300_000,
      askInMs: expect.any(Number),
      alarm: expect.stringContaining("until REST accepts the agent"),
    }),
  );
});

describe("waits from the gateway", () => {
  test.each<readonly [SessionEnd, Partial<ReconnectContext>, number, number]>([
    [closed(1013, "try_later;ra=7"), {}, 7_000, 8_700],
    [closed(1012, "drain;ra=3"), {}, 3_000, 4_300],
    [closed(1012, "drain;ra=3"), { drainWaitMs: 3_200 }, 3_200, 3_200],
    [closed(4009, "superseded;ra=900"), {}, 900_000, 991_000],
    [closed(4505, "duplicate_identity;ra=900"), { attempt: 9 }, 900_000, 991_000],
    [closed(4777, "a_new_word;ra=60"), {}, 60_000, 67_000],
    [refused(429, "", { retryAfterMs: 6_000 }), {}, 6_000, 7_600],
    [refused(403, "tenant_suspended", { retryAfterMs: 3_600_000 }), {}, 3_600_000, 3_961_000],
    [refused(418, "", { retryAfterMs: 2_000 }), {}, 2_000, 3_200],
  ])("after %o %o the agent waits %s to %s ms, as the gateway asked", (end, differences, least, most) =>
    expect(range(end, differences)).toEqual([least, most]),
  );
  test.each([closed(4009, "superseded;ra=999999"), refused(503, "", { retryAfterMs: 1e12 }), refused(503, "", { retryAfterMs: 1e308 })])(
    "the agent waits no longer than an hour and its jitter after %o",
    (end) => expect(range(end)).toEqual([3_600_000, 3_961_000]),
  );
  test("the wait after a drain is at most an hour", () => expect(range(closed(1012), { drainWaitMs: 1e12 })).toEqual([3_600_000, 3_600_000]));
  test("a long wait alarms the machine's operator, a short one does not", () => {
    expect(afterEnd(closed(4505, "duplicate_identity;ra=900"), now).alarm).toContain("4505");
    expect(afterEnd(closed(1013, "try_later;ra=5"), now).alarm).toBeNull();
  });
  test("an agent that must stop and wait does not poll meanwhile, one that must only wait does", () => {
    expect(afterEnd(closed(4505, "duplicate_identity;ra=900"), now).pollEveryMs).toBeNull();
    expect(afterEnd(refused(503, "", { retryAfterMs: 5_000 }), now).pollEveryMs).toBe(30_000);
  });
});

describe("exceptions", () => {
  const skewed = refused(401, "timestamp_skew");
  test("an agent that has just corrected its clock tries once at once", () => {
    expect(afterEnd(skewed, { ...now, corrected: true }).reconnectInMs).toBe(0);
    expect(afterEnd(skewed, { ...now, corrected: true, attempt: 7 }).reconnectInMs).toBe(0);
    expect(afterEnd(skewed, { ...now, corrected: true, correctedBefore: true }).reconnectInMs).toBeNull();
  });
  test("during a rotation an agent whose secret is refused backs off and tries the other one", () =>
    expect(range(closed(4500, "auth_failed"), { hasAnother: true, attempt: 1 })).toEqual([0, 2_000]));
});

describe("200 agents behind a proxy that refuses all of them for 8 s", () => {
  const OUTAGE_MS = 8_000;
  /** How many come back in each second after the end; the connections of all break at one moment. */
  const cameBack = (fleet: number, refusal: SessionEnd): readonly number[] => {
    const seconds = new Map<number, number>();
    for (let agent = 0; agent < 200; agent += 1) {
      const random = createRandom(fleet * 1_000 + agent);
      const at = { ...now, times: { ...times, firstWindowMs: 5_000 }, random };
      let atMs = afterEnd(closed(1006), at).reconnectInMs ?? Number.NaN;
      for (let attempt = 1; atMs < OUTAGE_MS; attempt += 1) atMs += afterEnd(refusal, { ...at, attempt }).reconnectInMs ?? Number.NaN;
      const second = Math.floor((atMs - OUTAGE_MS) / 1_000);
      seconds.set(second, (seconds.get(second) ?? 0) + 1);
    }
    return Array.from({ length: Math.max(...seconds.keys()) + 1 }, (_, second) => seconds.get(second) ?? 0);
  };
  const fleets = Array.from({ length: 100 }, (_, fleet) => cameBack(fleet, foreign));
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

  test("are back within 20 s of its end, and about a tenth of them at most in one second", () => {
    expect(fleets.filter((seconds) => seconds.slice(20).some((count) => count > 1))).toEqual([]);
    const peaks = fleets.map((seconds) => Math.max(...seconds));
    expect(mean(peaks)).toBeLessThan(20);
    expect(Math.max(...peaks)).toBeLessThanOrEqual(30);
  });

  test("would crowd if they took the refusals for broken connections", () => {
    const peaks = fleets.map((_, fleet) => Math.max(...cameBack(fleet, closed(1006, "", false))));
    expect(mean(peaks)).toBeGreaterThan(25);
  });
});

describe("agents that stop at one moment", () => {
  const asks = (end: SessionEnd): readonly { first: number; every: number }[] => {
    const random = createRandom(3);
    return Array.from({ length: 200 }, () => {
      const { askInMs, pollEveryMs } = afterEnd(end, { ...now, random });
      return { first: askInMs ?? Number.NaN, every: pollEveryMs ?? Number.NaN };
    });
  };
  const mostInASecond = (waits: readonly number[]): number => {
    const seconds = new Map<number, number>();
    for (const ms of waits) seconds.set(Math.floor(ms / 1_000), (seconds.get(Math.floor(ms / 1_000)) ?? 0) + 1);
    return Math.max(...seconds.values());
  };

  test("do not ask REST at one moment, neither at first nor after five minutes", () => {
    const found = asks(closed(4501, "device_revoked"));
    expect(mostInASecond(found.map(({ first }) => first))).toBeLessThanOrEqual(20);
    expect(mostInASecond(found.map(({ every }) => every))).toBeLessThanOrEqual(10);
    expect(found.filter(({ every }) => every < 240_000 || every > 360_000)).toEqual([]);
  });
});

test.each([
  ["try_later;ra=5", 5_000],
  ["try_later;ra=2.5", 2_500],
  ["try_later;ra=2.5;more=1", 2_500],
  ["rate_limited;ra=0", 0],
  ["x;ra=99999999", 3_600_000],
  ["x;ra=2147483648", 3_600_000],
  ["try_later", null],
  ["", null],
  ["x;ra=", null],
  ["x;ra=soon", null],
  ["x;ra=-5", null],
  ["x;ra=NaN", null],
  ["x;ra=1e999", null],
  ["x;ra=0x10", null],
])("the close reason %j asks for a wait of %s ms", (reason, ms) => expect(waitInReason(reason)).toBe(ms));

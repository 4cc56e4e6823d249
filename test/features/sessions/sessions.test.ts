// Rows of sessions: how many a person has, when they end by themselves, and what a job writes and deletes.
import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import type { Reply } from "../../../server/core/feature.ts";
import { createAuditTrail } from "../../../server/features/audit/index.ts";
import { createSessions, type SessionsFeature } from "../../../server/features/sessions/index.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { anyone, type CallableGroup, callable, failureOf, userOf } from "../../kit/gateway/call.ts";
import { createTestDatabase, namedStatements } from "../../kit/stores/database.ts";

const HOUR = 3_600;
const MOST = 50;

let db: Db;
let sessions: SessionsFeature;
let call: CallableGroup<typeof contract.sessions>;
/** A feature of its own has no caches. */
const open = (secretBox = createSecretBox(randomBytes(32))): SessionsFeature =>
  createSessions({
    db,
    clock: systemClock,
    audit: createAuditTrail({ secretBox }),
    secretBox,
    tokens: { local: { jwks: { keys: [] }, mint: async () => "token" } },
    provider: null,
    signedIn: async () => undefined,
    leaveImpersonation: async () => undefined,
    settings: {
      idleSeconds: 24 * HOUR,
      lifeSeconds: 14 * 24 * HOUR,
      publicUrl: () => "https://api.example",
      portalUrl: () => "https://api.example",
      home: () => "https://api.example/",
      isReturnAllowed: () => true,
    },
  });
beforeAll(async () => {
  db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 8, log: silentLog, namedStatements });
  sessions = open();
  call = callable(contract.sessions, sessions.handlers, db);
});
afterAll(() => db.close());

const as = (userId: string) => ({ ...anyone(), principal: userOf(userId) });
const signIn = async (userId: string, scope = anyone()) => {
  const { token } = await sessions.createLink({ userId });
  const reply: Reply = { headers: {} };
  const { session } = await call.signIn(scope, { token }, reply);
  return { sessionId: session.sessionId, secret: /=([\w-]{43});/.exec(reply.cookies?.[0] ?? "")?.[1] ?? "" };
};
const idsOf = async (userId: string): Promise<readonly string[]> => (await call.list(as(userId), {})).items.map(({ sessionId }) => sessionId);
const runJobs = async (feature = sessions) => {
  for (const { run } of feature.jobs) await run(new AbortController().signal);
};
const set = (sessionId: string, change: string) => db.query(`update sessions set ${change} where session_id = $1`, [sessionId]);
const exists = async (sessionId: string): Promise<boolean> => (await db.query("select 1 from sessions where session_id = $1", [sessionId])).length > 0;

describe("limit", () => {
  test(`beyond ${MOST} sessions of a person the oldest ends, and nobody else's`, async () => {
    const [userId, other] = [randomUUID(), randomUUID()];
    await signIn(other);
    const made: string[] = [];
    for (let n = 0; n < MOST + 3; n += 1) made.push((await signIn(userId)).sessionId);
    expect(await idsOf(userId)).toEqual(made.slice(3).reverse());
    expect(await idsOf(other)).toHaveLength(1);
  });

  test(`64 sign-ins at once leave ${MOST} sessions`, async () => {
    const userId = randomUUID();
    await Promise.all(Array.from({ length: 64 }, () => signIn(userId)));
    expect(await idsOf(userId)).toHaveLength(MOST);
  });
});

describe("time", () => {
  test.each([
    ["it was used a day ago for the last time", "last_seen_at = now() - interval '24 hours 1 second'"],
    ["its 14 days are over, however often it is used", "expires_at = now() - interval '1 second'"],
  ])("a session ends when %s, and a job deletes it", async (_, change) => {
    const userId = randomUUID();
    const { sessionId, secret } = await signIn(userId);
    expect(await sessions.lookup.find(secret)).toMatchObject({ sessionId, userId });
    await set(sessionId, change);
    expect([await open().lookup.find(secret), await open().lookup.byId(sessionId), await idsOf(userId)]).toEqual([null, null, []]);
    await runJobs(open());
    expect(await exists(sessionId)).toBe(false);
  });

  test("the job deletes no living session and no good link, and deletes links that are over", async () => {
    const { sessionId } = await signIn(randomUUID());
    const good = await sessions.createLink({ userId: "ann" });
    await sessions.createLink({ userId: "late" });
    await db.query("update sign_in_links set expires_at = now() - interval '1 second' where user_id = 'late'");
    await runJobs();
    expect(await exists(sessionId)).toBe(true);
    expect(await db.query("select 1 from sign_in_links where user_id = 'late'")).toEqual([]);
    expect((await call.signIn(anyone(), { token: good.token })).session).toMatchObject({ method: "link" });
  });

  test("a job writes the last use, also of what the session handed out", async () => {
    const seen = async (sessionId: string) =>
      (await db.query<{ at: Date }>("select last_seen_at as at from sessions where session_id = $1", [sessionId]))[0]?.at.getTime() ?? 0;
    const [cookie, token, unused] = [await signIn(randomUUID()), await signIn(randomUUID()), await signIn(randomUUID())];
    for (const { sessionId } of [cookie, token, unused]) await set(sessionId, "last_seen_at = now() - interval '1 hour'");
    await runJobs();
    await sessions.lookup.find(cookie.secret);
    await sessions.lookup.byId(token.sessionId);
    await runJobs();
    const hourAgo = Date.now() - HOUR * 500;
    expect(await Promise.all([cookie, token, unused].map(async ({ sessionId }) => (await seen(sessionId)) > hourAgo))).toEqual([true, true, false]);
  });
});

describe("lookup", () => {
  test.each(["", "x", "a".repeat(42), "a".repeat(44), `${"a".repeat(42)}\u0000`, `${"a".repeat(42)}é`, "__proto__"])(
    "the secret %j finds nothing",
    async (secret) => {
      expect(await sessions.lookup.find(secret)).toBeNull();
    },
  );

  test("the CSRF token depends on the session and on the master key", async () => {
    const [one, two] = [await signIn(randomUUID()), await signIn(randomUUID())];
    const tokens = await Promise.all([
      sessions.lookup.find(one.secret),
      sessions.lookup.byId(one.sessionId),
      sessions.lookup.find(two.secret),
      open().lookup.find(one.secret),
    ]);
    const [first, same, other, elsewhere] = tokens.map((record) => record?.csrfTokens.join());
    expect(first).toBe(same);
    expect(new Set([first, other, elsewhere]).size).toBe(3);
  });
});

describe("records", () => {
  test("a user agent is cut at 300 characters, and one that cannot be stored is left out", async () => {
    const userId = randomUUID();
    await signIn(userId, { ...anyone(), userAgent: "u".repeat(1_000) });
    await signIn(userId, { ...anyone(), userAgent: "a\u0000b" });
    expect((await call.list(as(userId), {})).items.map(({ userAgent }) => userAgent)).toEqual([null, "u".repeat(300)]);
  });

  test("ending all sessions without having one ends them all, and repeating it ends none", async () => {
    const userId = randomUUID();
    await signIn(userId);
    await signIn(userId);
    expect(await call.endOthers(as(userId), {})).toEqual({ ended: 2 });
    expect(await call.endOthers(as(userId), {})).toEqual({ ended: 0 });
    expect(await failureOf(call.end(as(userId), { sessionId: "ses_gone" }))).toMatchObject({ code: "SESSION_NOT_FOUND" });
  });
});

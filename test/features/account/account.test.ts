// One's own account: what one sets, where calls take place by default, what one is told by mail, and the end of the account. Each test has people of
// its own, and some wait until what a node remembers of a person is old, so they run beside each other.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { mintWith } from "../../kit/gateway/tokens.ts";
import { asBearer, type Caller, emailOf, OPERATOR, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { startSmtpServer } from "../../kit/net/smtp.ts";

let smtp: Awaited<ReturnType<typeof startSmtpServer>>;
let world: World;
beforeAll(async () => {
  smtp = await startSmtpServer();
  world = await startWorld({ SMTP_URL: smtp.url, MAIL_FROM: "mooring@gateway.example", RATE_LIMIT_STANDARD: "off", RATE_LIMIT_INVITES: "off" });
});
afterAll(async () => {
  await world.close();
  await smtp.close();
});

/** A signed-in person; their token names no tenant. */
const newPerson = async (): Promise<{ userId: string; as: Caller }> => {
  const userId = newId("usr");
  return { userId, as: asBearer((await world.app.mint({ userId, email: emailOf(userId), ttlSeconds: 600 })).token) };
};
const join = ({ tenantId }: TestTenant, userId: string, role: string) =>
  world.sql.query("insert into memberships (member_id, tenant_id, user_id, role, email) values ($1, $2, $3, $4, $5)", [
    newId("mem"),
    tenantId,
    userId,
    role,
    emailOf(userId),
  ]);
const call = (as: Caller, route: string, body?: object) => {
  const [method = "", path = ""] = route.split(" ");
  return world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
};
const run = async (job: string): Promise<void> => {
  await world.app.jobs.find(({ name }) => name === job)?.run(new AbortController().signal);
};
const eventsOf = async (id: string): Promise<readonly string[]> =>
  (await world.sql.query("select type from outbox_events where subject_id = $1 order by position", [id])).rows.map(({ type }) => type);

describe.concurrent("the profile", () => {
  test("begins with defaults and changes only in what is sent", async () => {
    const { userId, as } = await newPerson();
    const fresh = (await call(as, "GET /account")).body.data;
    expect(fresh).toMatchObject({ userId, email: emailOf(userId), emailVerified: true, name: null, preferences: {}, memberships: [], version: 1 });
    const preferences = { theme: "dark", filters: [{ tag: ["a", null] }] };
    expect((await call(as, "PATCH /account", { name: " Kim ", locale: "pt-PT", timezone: "Europe/Lisbon", preferences, version: 1 })).body.data).toMatchObject({
      ...{ name: "Kim", locale: "pt-PT", timezone: "Europe/Lisbon", preferences, version: 2 },
    });
    expect((await call(as, "PATCH /account", { locale: null })).body.data).toMatchObject({ name: "Kim", locale: null, preferences, version: 3 });
    expect((await call(as, "PATCH /account", { name: "Sam", version: 2 })).body).toMatchObject({ code: "VERSION_CONFLICT", details: { currentVersion: 3 } });
  });

  test("is one's own: nobody sees or changes another's", async () => {
    const [one, other] = [await newPerson(), await newPerson()];
    await call(one.as, "PATCH /account", { name: "One" });
    expect((await call(other.as, "GET /account")).body.data.name).toBeNull();
    expect((await call(other.as, "PATCH /account", { userId: one.userId, name: "x" })).status).toBe(400);
  });

  test("refuses what is too large, too deep or no text", async () => {
    const { as } = await newPerson();
    let deep: unknown = 1;
    for (let level = 0; level < 11; level += 1) deep = { deep };
    const bodies = [
      { preferences: { x: "x".repeat(16_400) } },
      { preferences: { deep } },
      { preferences: [] },
      { preferences: { "a\0": 1 } },
      { preferences: { a: "\ud800" } },
      { preferences: { ["k".repeat(65)]: 1 } },
      { name: "" },
      { name: "a\0" },
      { locale: "not a tag" },
      { timezone: "Mars/Phobos" },
      { version: 2 ** 31 },
    ];
    for (const body of bodies) expect([JSON.stringify(body).slice(0, 40), (await call(as, "PATCH /account", body)).status]).toEqual([expect.any(String), 400]);
    const sent = await world.call(as, "PATCH", "/v1/account", { rawBody: '{"preferences":{"__proto__":{"polluted":true}}}' });
    expect(sent.status).toBe(400);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe.concurrent("the default tenant", () => {
  test("is a person's only one until they choose or join another, for a session as for a token", async () => {
    const [first, second] = [await world.tenant(), await world.tenant()];
    const { userId, as } = await newPerson();
    const session = await world.session(userId);
    expect((await call(session.as, "GET /devices")).body).toMatchObject({ code: "UNAUTHORIZED", details: { reason: "missing_tenant" } });
    await join(first, userId, "viewer");
    for (const each of [as, session.as]) {
      expect((await call(each, "GET /devices")).status).toBe(200);
      expect((await call(each, "GET /auth/me")).body.data).toMatchObject({ tenantId: first.tenantId, role: "viewer" });
    }
    const made = await call(session.as, "POST /pairing/enrollment-tokens", { name: "n" });
    expect([made.status, made.body.details?.role]).toEqual([403, "viewer"]);
    await join(second, userId, "operator");
    await eventually(async () => expect((await call(session.as, "GET /devices")).body).toMatchObject({ details: { reason: "missing_tenant" } }));
    expect((await call(session.as, "GET /auth/me")).body.data).toMatchObject({ tenantId: null, role: null, permissions: [] });
    expect((await call(session.as, "POST /account/switch-tenant", { tenantId: second.tenantId })).status).toBe(200);
    expect((await call(as, "GET /devices")).status).toBe(200);
    await world.sql.query("delete from memberships where user_id = $1 and tenant_id = $2", [userId, second.tenantId]);
    await eventually(async () => expect((await call(as, "GET /devices")).status).toBe(200));
  });

  test("is where calls take place that name none, until the person leaves it", async () => {
    const [first, second] = [await world.tenant(), await world.tenant()];
    const { userId, as } = await newPerson();
    await join(first, userId, "viewer");
    await join(second, userId, "operator");
    expect((await call(as, "GET /devices")).body).toMatchObject({ code: "UNAUTHORIZED", details: { reason: "missing_tenant" } });
    expect((await call(as, "POST /account/switch-tenant", { tenantId: second.tenantId })).body.data).toMatchObject({ role: "operator", isDefault: true });
    expect((await call(as, "GET /devices")).status).toBe(200);
    const made = await call(as, "POST /pairing/enrollment-tokens", { name: "n" });
    expect([made.status, made.body.details?.role]).toEqual([403, "operator"]);
    const named = await world.call(as, "GET", "/v1/auth/me", { headers: { "x-svc-tenant-id": first.tenantId } });
    expect(named.body.data).toMatchObject({ tenantId: first.tenantId, role: "viewer" });
    const listed = (await call(as, "GET /account/tenants")).body.data;
    expect(listed.map((each: { tenantId: string; isDefault: boolean }) => [each.tenantId, each.isDefault])).toEqual([
      [first.tenantId, false],
      [second.tenantId, true],
    ]);
    await world.sql.query("delete from memberships where user_id = $1 and tenant_id = $2", [userId, second.tenantId]);
    expect((await call(as, "GET /account")).body.data.defaultTenantId).toBeNull();
  });

  test("must be one's own", async () => {
    const { as } = await newPerson();
    const { tenantId } = await world.tenant();
    for (const id of [tenantId, "ten_unknown", "__proto__"])
      expect((await call(as, "POST /account/switch-tenant", { tenantId: id })).body.code).toBe("TENANT_NOT_FOUND");
  });
});

describe.concurrent("notices", () => {
  const inviteAndAccept = async (owner: Caller) => {
    const { userId, as } = await newPerson();
    await call(owner, "POST /invites", { email: emailOf(userId), roleId: "viewer" });
    const token = await eventually(() => {
      const raw =
        smtp.mails
          .find(({ to }) => to.includes(emailOf(userId)))
          ?.raw.replace(/=\r\n/g, "")
          .replace(/=3D/g, "=") ?? "";
      const [, found] = /token=([\w-]{43})/.exec(raw) ?? [];
      if (found === undefined) throw new Error("no mail yet");
      return found;
    });
    expect((await call(as, "POST /invites/accept", { token })).status).toBe(200);
  };
  const noticesTo = async (userId: string): Promise<number> =>
    (await world.sql.query("select 1 from mails where recipient = $1", [emailOf(userId)])).rows.length;

  test("reach the inviter by mail when an invite is accepted, unless they have chosen not to be told", async () => {
    const tenant = await world.tenant();
    const owner = await tenant.user("owner");
    await inviteAndAccept(owner);
    await eventually(() => {
      const subjects = smtp.mails.filter(({ to }) => to.includes(emailOf(tenant.ownerId))).map(({ raw }) => raw.replace(/\r\n +/g, " "));
      expect(subjects.filter((raw) => /^Subject: Tenant .*: A person accepted your invite/m.test(raw))).toHaveLength(1);
    });
    const before = await noticesTo(tenant.ownerId);
    const items = [
      { event: "invite.accepted", email: false, inApp: true },
      { event: "member.joined", email: true, inApp: true },
    ];
    const set = await call(owner, "PUT /account/notifications", { items });
    expect(set.body.data).toEqual(expect.arrayContaining(items));
    await inviteAndAccept(owner);
    // The notice of the new member, which comes after that of the invite.
    await eventually(async () => expect(await noticesTo(tenant.ownerId)).toBe(before + 1));
    await eventually(() => expect(smtp.mails.filter(({ to, raw }) => to.includes(emailOf(tenant.ownerId)) && /became a member/.test(raw))).toHaveLength(1));
  });

  test("reach the owners by mail when a key is about to expire", async () => {
    const tenant = await world.tenant();
    await call(await tenant.user("owner"), "POST /api-keys", { name: "Cellar", expiresInDays: 1 });
    await run("api-keys.tell-expiry");
    await eventually(() => {
      const subjects = smtp.mails.filter(({ to }) => to.includes(emailOf(tenant.ownerId))).map(({ raw }) => raw.replace(/\r\n +/g, " "));
      expect(subjects.filter((raw) => /^Subject: Tenant .*: The API key Cellar expires at 20/m.test(raw))).toHaveLength(1);
    });
  });

  test("reach the owners by mail when an administrator of the installation begins to act as a member", async () => {
    const tenant = await world.tenant();
    await call(await world.operator(), "POST /admin/impersonations", { tenantId: tenant.tenantId, reason: "ticket 4711" });
    await eventually(() => {
      const mails = smtp.mails.filter(({ to }) => to.includes(emailOf(tenant.ownerId))).map(({ raw }) => raw.replace(/=?\r\n */g, " "));
      expect(mails.filter((raw) => raw.includes(OPERATOR) && raw.includes("ticket 4711"))).toHaveLength(1);
    });
  });

  test("can be chosen only for events that exist", async () => {
    const { as } = await newPerson();
    expect((await call(as, "PUT /account/notifications", { items: [{ event: "__proto__", email: true, inApp: true }] })).status).toBe(400);
  });
});

describe.concurrent("the end of an account", () => {
  test("needs a recent sign-in", async () => {
    const sub = newId("usr");
    const stale = asBearer(await mintWith(world, { sub, auth_time: Math.floor(Date.now() / 1_000) - 601 }));
    expect((await call(stale, "DELETE /account")).body).toMatchObject({ code: "REAUTHENTICATION_REQUIRED", details: { maxAgeSeconds: 600 } });
    expect((await call(asBearer(await mintWith(world, { sub })), "DELETE /account")).body.code).toBe("REAUTHENTICATION_REQUIRED");
  });

  test("accepts the sign-in of a session, and of a token that the session got, while it is recent", async () => {
    const { as, sessionId } = await world.session(newId("usr"));
    const { accessToken } = (await call(as, "POST /auth/token")).body.data;
    const byToken = asBearer(accessToken);
    for (const each of [as, byToken]) {
      expect((await call(each, "DELETE /account")).status).toBe(200);
      expect((await call(each, "POST /account/restore")).status).toBe(200);
    }
    await world.sql.query("update sessions set created_at = created_at - interval '601 s' where session_id = $1", [sessionId]);
    for (const each of [as, byToken]) await eventually(async () => expect((await call(each, "DELETE /account")).body?.code).toBe("REAUTHENTICATION_REQUIRED"));
  });

  test("is scheduled, told of and canceled; the job then deletes nothing", async () => {
    const tenant = await world.tenant();
    const { userId, as } = await newPerson();
    await join(tenant, userId, "operator");
    const { deleteAfter } = (await call(as, "DELETE /account")).body.data;
    expect(Math.round((Date.parse(deleteAfter) - Date.now()) / 86_400_000)).toBe(30);
    expect((await call(as, "DELETE /account")).body.data.deleteAfter).toBe(deleteAfter);
    expect((await call(as, "POST /account/restore", {})).body.data.deleteAfter).toBeNull();
    await run("account.delete");
    expect((await call(as, "GET /account")).body.data.memberships).toHaveLength(1);
    expect(await eventsOf(userId)).toEqual(["account.deletion_scheduled", "account.restored"]);
  });

  test("is canceled by the next sign-in, as the letter says, and other sign-ins change nothing", async () => {
    const tenant = await world.tenant();
    const { userId, as } = await newPerson();
    await join(tenant, userId, "operator");
    await call(as, "DELETE /account");
    await world.session(newId("usr"));
    expect((await call(as, "GET /account")).body.data.deleteAfter).not.toBeNull();
    const session = await world.session(userId);
    expect((await call(session.as, "GET /account")).body.data.deleteAfter).toBeNull();
    await world.session(userId);
    expect(await eventsOf(userId)).toEqual(["account.deletion_scheduled", "account.restored"]);
  });

  test("takes profile, memberships and sessions with it once its days are over", async () => {
    const tenant = await world.tenant();
    const { userId, as } = await newPerson();
    await join(tenant, userId, "operator");
    await call(as, "PATCH /account", { name: "Leaving" });
    const session = await world.session(userId);
    await world.app.signInLink({ userId });
    await call(as, "DELETE /account");
    await world.sql.query("update user_profiles set delete_after = now() - interval '1 second' where user_id = $1", [userId]);
    await run("account.delete");
    for (const table of ["memberships", "user_profiles", "users", "sessions", "sign_in_links"]) {
      const { rows } = await world.sql.query(`select user_id from ${table} where user_id = $1`, [userId]);
      expect([table, rows]).toEqual([table, []]);
    }
    await eventually(async () => expect((await call(session.as, "GET /account")).status).toBe(401));
    expect(await eventsOf(userId)).toEqual(["account.deletion_scheduled", "account.deleted"]);
  });

  test("is refused to the last owner of a tenant; of owners who leave at the same moment one stays", async () => {
    const tenant = await world.tenant();
    expect((await call(await tenant.user("owner"), "DELETE /account")).body).toMatchObject({ code: "LAST_OWNER", details: { tenantIds: [tenant.tenantId] } });
    const others = await Promise.all(Array.from({ length: 4 }, () => newPerson()));
    for (const { userId } of others) await join(tenant, userId, "owner");
    const answers = await Promise.all([...others.map(({ as }) => as), await tenant.user("owner")].map((as) => call(as, "DELETE /account")));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 409]);
  });

  test("waits if its user has become a last owner meanwhile", async () => {
    const tenant = await world.tenant();
    const { userId, as } = await newPerson();
    await join(tenant, userId, "owner");
    expect((await call(as, "DELETE /account")).status).toBe(200);
    await world.sql.query("delete from memberships where tenant_id = $1 and user_id <> $2", [tenant.tenantId, userId]);
    await world.sql.query("update user_profiles set delete_after = now() - interval '1 second' where user_id = $1", [userId]);
    await run("account.delete");
    expect((await call(as, "GET /account")).body.data.memberships).toHaveLength(1);
  });
});

test("the export holds one's own data, and no record of a tenant that one has left", async () => {
  const [stays, left] = [await world.tenant(), await world.tenant()];
  const { userId, as } = await newPerson();
  for (const tenant of [stays, left]) {
    await join(tenant, userId, "admin");
    await world.call(as, "POST", "/v1/api-keys", { body: { name: "k" }, headers: { "x-svc-tenant-id": tenant.tenantId } });
  }
  await call(as, "PATCH /account", { name: "Kim" });
  await world.sql.query("delete from memberships where tenant_id = $1 and user_id = $2", [left.tenantId, userId]);
  const { account, tenants, auditRecords } = (await call(as, "GET /account/export")).body.data;
  expect([account.name, tenants.map(({ tenantId }: { tenantId: string }) => tenantId)]).toEqual(["Kim", [stays.tenantId]]);
  expect(auditRecords.map(({ action, tenantId }: { action: string; tenantId: string | null }) => [action, tenantId])).toEqual([
    ["account.update", null],
    ["apiKeys.create", stays.tenantId],
  ]);
});

// Invites: one use, one address, no more people than the plan allows, no role that the inviter does not hold.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { winnersOf } from "../../kit/gateway/races.ts";
import { type Answer, anonymous, asBearer, type Caller, emailOf, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

const PER_HOUR = 20;

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off", TRUSTED_PROXIES: "127.0.0.0/8" }, { spread: true });
});
afterAll(() => world.close());

interface Person {
  readonly userId: string;
  readonly email: string;
  readonly as: Caller;
}
const newPerson = async (email?: string): Promise<Person> => {
  const userId = newId("usr");
  const address = email ?? emailOf(userId);
  return { userId, email: address, as: asBearer((await world.app.mint({ userId, email: address, ttlSeconds: 600 })).token) };
};
const open = async (): Promise<{ tenant: TestTenant; owner: Caller }> => {
  const tenant = await world.tenant();
  return { tenant, owner: await tenant.user("owner") };
};
/** A tenant with the limits of the plan starter, as everyone who is no operator gets it. */
const openLimited = async (members: number) => {
  const { tenant, owner } = await open();
  await world.sql.query("update tenants set rate_limit_overrides = '{\"*\": null}', limit_overrides = $2 where tenant_id = $1", [
    tenant.tenantId,
    JSON.stringify({ members }),
  ]);
  return { tenant, owner };
};
const create = (as: Caller, body: object): Promise<Answer> => world.call(as, "POST", "/v1/invites", { body: { roleId: "operator", ...body } });
const tokenOf = ({ body }: Answer): string => new URL(body.data.link).searchParams.get("token") ?? "";
const accept = (as: Caller, token: string): Promise<Answer> => world.call(as, "POST", "/v1/invites/accept", { body: { token } });
const codeOf = ({ status, body }: Answer): readonly unknown[] => [status, body?.code ?? null];
const eventsOf = async (id: string): Promise<readonly string[]> =>
  (await world.sql.query("select type from outbox_events where subject_id = $1 order by position", [id])).rows.map(({ type }) => type);
const run = async (job: string): Promise<void> => {
  await world.app.jobs.find(({ name }) => name === job)?.run(new AbortController().signal);
};

describe("accepting", () => {
  test("makes the invited person a member with the invite's role, and tells of it", async () => {
    const { tenant, owner } = await open();
    const person = await newPerson();
    const made = await create(owner, { email: person.email.toUpperCase(), message: "Hello <b>you</b>" });
    expect(made.body.data).toMatchObject({ email: person.email, status: "pending", sendCount: 1, delivery: null, invitedBy: `user:${tenant.ownerId}` });
    const { inviteId } = made.body.data;
    const shown = await world.call(anonymous, "GET", `/v1/invites/lookup?token=${tokenOf(made)}`);
    expect(shown.body.data).toMatchObject({ inviter: emailOf(tenant.ownerId), roleId: "operator", email: "u***@users.example", message: "Hello <b>you</b>" });
    const { status, body } = await accept(person.as, tokenOf(made));
    expect([status, body.data]).toEqual([200, { inviteId, tenantId: tenant.tenantId, memberId: expect.stringMatching(/^mem_/), roleId: "operator" }]);
    const me = await world.call(person.as, "GET", "/v1/auth/me", { headers: { "x-svc-tenant-id": tenant.tenantId } });
    expect(me.body.data).toMatchObject({ tenantId: tenant.tenantId, role: "operator" });
    expect((await world.call(owner, "GET", `/v1/invites/${inviteId}`)).body.data).toMatchObject({ status: "accepted", acceptedBy: person.userId });
    expect(await eventsOf(inviteId)).toEqual(["invite.created", "invite.accepted"]);
    expect(await eventsOf(body.data.memberId)).toEqual(["member.joined"]);
  });

  test("names the inviter as the sign-in did, and else by address", async () => {
    const { tenant, owner } = await open();
    await world.session(tenant.ownerId);
    await world.sql.query("update users set name = 'Ada Example' where user_id = $1", [tenant.ownerId]);
    const made = await create(owner, { email: (await newPerson()).email });
    expect((await world.call(anonymous, "GET", `/v1/invites/lookup?token=${tokenOf(made)}`)).body.data.inviter).toBe("Ada Example");
  });

  test("gives a role of the tenant's own, for the invite's devices alone", async () => {
    const { tenant, owner } = await open();
    const person = await newPerson();
    const [seen, hidden] = [await tenant.device(), await tenant.device()];
    await world.call(owner, "PATCH", `/v1/devices/${seen.deviceId}`, { body: { tags: ["site:berlin"] } });
    const role = await world.call(owner, "POST", "/v1/roles", { body: { name: "Night shift", permissions: ["device:read"] } });
    const selector = { deviceIds: [], tags: ["site:berlin"], fleetIds: [] };
    const made = await create(owner, { email: person.email, roleId: role.body.data.roleId, selector: { tags: ["site:berlin"] } });
    expect([made.status, made.body.data.selector]).toEqual([201, selector]);
    expect((await accept(person.as, tokenOf(made))).status).toBe(200);
    const within = { headers: { "x-svc-tenant-id": tenant.tenantId } };
    expect((await world.call(person.as, "GET", "/v1/auth/me", within)).body.data).toMatchObject({
      role: "night-shift",
      permissions: ["device:read"],
      selector,
    });
    const listed = await world.call(person.as, "GET", "/v1/devices", within);
    expect(listed.body.data.map(({ deviceId }: { deviceId: string }) => deviceId)).toEqual([seen.deviceId]);
    expect(codeOf(await world.call(person.as, "GET", `/v1/devices/${hidden.deviceId}`, within))).toEqual([404, "DEVICE_NOT_FOUND"]);
  });

  test("names a role and devices of this tenant", async () => {
    const { owner } = await open();
    const elsewhere = await (await world.tenant()).device();
    expect(codeOf(await create(owner, { email: emailOf(newId("usr")), roleId: "__proto__" }))).toEqual([404, "ROLE_NOT_FOUND"]);
    expect(codeOf(await create(owner, { email: emailOf(newId("usr")), selector: { deviceIds: [elsewhere.deviceId] } }))).toEqual([404, "DEVICE_NOT_FOUND"]);
  });

  test("works once, however many try at the same moment", async () => {
    const { owner } = await open();
    const person = await newPerson();
    const token = tokenOf(await create(owner, { email: person.email }));
    const answers = await Promise.all(Array.from({ length: 16 }, () => accept(person.as, token)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 15 }, () => 409)]);
    expect(new Set(answers.filter(({ status }) => status === 409).map(({ body }) => body.code))).toEqual(new Set(["INVITE_ALREADY_USED"]));
  });

  test("is for the invited address alone, and only if the token says that it is verified", async () => {
    const { owner } = await open();
    const person = await newPerson();
    const token = tokenOf(await create(owner, { email: person.email }));
    expect((await accept((await newPerson()).as, token)).body).toMatchObject({ code: "INVITE_EMAIL_MISMATCH", details: { reason: "other_address" } });
    const unknown = asBearer((await world.app.mint({ userId: person.userId, ttlSeconds: 600 })).token);
    expect((await accept(unknown, token)).body).toMatchObject({ code: "INVITE_EMAIL_MISMATCH", details: { reason: "email_not_verified" } });
    expect((await accept(person.as, token)).status).toBe(200);
  });

  test("fails once the inviter may no longer grant the role, or the tenant is not active", async () => {
    const { tenant } = await open();
    const admin = await tenant.user("admin");
    const person = await newPerson();
    const token = tokenOf(await create(admin, { email: person.email, roleId: "admin" }));
    await world.sql.query("update tenants set status = 'suspended' where tenant_id = $1", [tenant.tenantId]);
    await world.sql.query("delete from memberships where tenant_id = $1 and role = 'admin'", [tenant.tenantId]);
    const other = await startWorld({}, { beside: world });
    try {
      const elsewhere = () => other.call(person.as, "POST", "/v1/invites/accept", { body: { token } });
      expect(codeOf(await elsewhere())).toEqual([403, "TENANT_SUSPENDED"]);
      await world.sql.query("update tenants set status = 'active' where tenant_id = $1", [tenant.tenantId]);
      const third = await startWorld({}, { beside: world });
      expect(codeOf(await third.call(person.as, "POST", "/v1/invites/accept", { body: { token } }))).toEqual([403, "PRIVILEGE_ESCALATION"]);
      await third.close();
    } finally {
      await other.close();
    }
  });

  test("refuses who is a member already and leaves the invite pending", async () => {
    const { tenant, owner } = await open();
    const person = await newPerson();
    const made = await create(owner, { email: person.email });
    await world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'viewer')", [
      newId("mem"),
      tenant.tenantId,
      person.userId,
    ]);
    expect(codeOf(await accept(person.as, tokenOf(made)))).toEqual([409, "ALREADY_MEMBER"]);
    expect((await world.call(owner, "GET", `/v1/invites/${made.body.data.inviteId}`)).body.data.status).toBe("pending");
  });
});

describe("a link", () => {
  test("is stored only as a hash, and is in no audit record or event", async () => {
    const { tenant, owner } = await open();
    const token = tokenOf(await create(owner, { email: "a@users.example" }));
    const tables = ["invites", "mails", "audit_logs", "outbox_events", "idempotency_keys"];
    for (const table of tables) {
      const { rows } = await world.sql.query(`select t::text from ${table} t where tenant_id = $1`, [tenant.tenantId]);
      expect(JSON.stringify(rows)).not.toContain(token);
    }
  });

  test("dies with a resend, a revocation and its expiry", async () => {
    const { owner } = await open();
    const lookup = async (token: string) => codeOf(await world.call(anonymous, "GET", `/v1/invites/lookup?token=${token}`));
    const made = await create(owner, { email: "b@users.example" });
    const { inviteId } = made.body.data;
    const again = await world.call(owner, "POST", `/v1/invites/${inviteId}/resend`, { body: { expiresInDays: 30 } });
    expect(again.body.data).toMatchObject({ sendCount: 2, status: "pending" });
    expect(Date.parse(again.body.data.expiresAt) - Date.parse(made.body.data.expiresAt)).toBeGreaterThan(22 * 86_400_000);
    expect(await lookup(tokenOf(made))).toEqual([404, "INVITE_NOT_FOUND"]);
    expect(await lookup(tokenOf(again))).toEqual([200, null]);
    expect((await world.call(owner, "DELETE", `/v1/invites/${inviteId}`)).status).toBe(204);
    expect(await lookup(tokenOf(again))).toEqual([404, "INVITE_NOT_FOUND"]);
    for (const [method, path] of [["DELETE", ""] as const, ["POST", "/resend"] as const]) {
      const refused = await world.call(owner, method, `/v1/invites/${inviteId}${path}`, method === "POST" ? { body: {} } : {});
      expect(refused.body).toMatchObject({ code: "INVALID_STATE_TRANSITION", details: { from: "revoked" } });
    }
    const old = await create(owner, { email: "b@users.example" });
    await world.sql.query("update invites set expires_at = now() - interval '1 second' where invite_id = $1", [old.body.data.inviteId]);
    expect(await lookup(tokenOf(old))).toEqual([409, "INVITE_EXPIRED"]);
    expect((await world.call(owner, "GET", "/v1/invites?status=pending")).body.data).toEqual([]);
    await run("invites.expire");
    expect(await eventsOf(old.body.data.inviteId)).toEqual(["invite.created", "invite.expired"]);
    expect((await world.call(owner, "GET", "/v1/invites?status=expired")).body.data.map((each: { status: string }) => each.status)).toEqual(["expired"]);
  });

  test("can be declined by whoever holds it, once", async () => {
    const { owner } = await open();
    const made = await create(owner, { email: "c@users.example" });
    const decline = () => world.call(anonymous, "POST", "/v1/invites/decline", { body: { token: tokenOf(made) } });
    expect((await decline()).status).toBe(204);
    expect(codeOf(await decline())).toEqual([409, "INVITE_ALREADY_USED"]);
    const { status, declinedAt } = (await world.call(owner, "GET", `/v1/invites/${made.body.data.inviteId}`)).body.data;
    expect([status, declinedAt]).toEqual(["declined", expect.any(String)]);
    expect(await eventsOf(made.body.data.inviteId)).toEqual(["invite.created", "invite.declined"]);
  });

  test("that nobody made is answered like any other, whatever its text", async () => {
    for (const token of ["x", "x".repeat(128), "../../etc", "__proto__", "\u{1f600}"])
      expect(codeOf(await world.call(anonymous, "GET", `/v1/invites/lookup?token=${encodeURIComponent(token)}`))).toEqual([404, "INVITE_NOT_FOUND"]);
    for (const body of [{ token: "a\0b" }, { token: "\ud800" }, { token: 1 }, {}, { token: "" }])
      expect((await world.call(anonymous, "POST", "/v1/invites/decline", { body })).status).toBe(400);
  });
});

describe("inviting", () => {
  test("several people gives each their own result", async () => {
    const { tenant, owner } = await open();
    await create(owner, { email: "known@users.example" });
    const emails = ["new@users.example", "KNOWN@users.example", emailOf(tenant.ownerId), "new@users.example"];
    const { status, body } = await create(owner, { emails });
    expect(status).toBe(201);
    expect(body.data.results.map(({ email, code, link }: { email: string; code: string; link?: string }) => [email, code, link !== undefined])).toEqual([
      ["new@users.example", null, true],
      ["known@users.example", "INVITE_ALREADY_PENDING", false],
      [emailOf(tenant.ownerId), "ALREADY_MEMBER", false],
      ["new@users.example", "INVITE_ALREADY_PENDING", false],
    ]);
    expect(body.data.inviteId).toBe(body.data.results[0].invite.inviteId);
    expect(codeOf(await create(owner, { emails: ["known@users.example", "new@users.example"] }))).toEqual([409, "INVITE_ALREADY_PENDING"]);
  });

  test("refuses what is no address, both forms at once, and neither", async () => {
    const { owner } = await open();
    const bodies = [
      { email: "a@b.example\r\nBcc: c@d.example" },
      { email: "a@b.example, c@d.example" },
      { email: '"x\0"@b.example' },
      { email: "a@b.example", emails: ["c@d.example"] },
      {},
      { emails: [] },
      { emails: Array.from({ length: 21 }, (_, at) => `p${at}@b.example`) },
      { email: "a@b.example", roleId: "x".repeat(65) },
      { email: "a@b.example", selector: { fleetIds: [] } },
      { email: "a@b.example", expiresInDays: 31 },
      { email: "a@b.example", expiresInDays: 2 ** 31 },
      { email: "a@b.example", message: "x".repeat(501) },
      { email: "a@b.example", message: "a\0b" },
    ];
    for (const body of bodies) expect([body, (await create(owner, body)).status]).toEqual([body, 400]);
  });

  test("to a role that the caller does not hold is refused, also as a resend", async () => {
    const { tenant, owner } = await open();
    const admin = await tenant.user("admin");
    expect(codeOf(await create(admin, { email: "d@users.example", roleId: "owner" }))).toEqual([403, "PRIVILEGE_ESCALATION"]);
    const { inviteId } = (await create(owner, { email: "d@users.example", roleId: "owner" })).body.data;
    expect(codeOf(await world.call(admin, "POST", `/v1/invites/${inviteId}/resend`, { body: {} }))).toEqual([403, "PRIVILEGE_ESCALATION"]);
  });

  test("64 at once at a limit of 5 leaves 5 members and invites; one who accepts takes the place of the invite", async () => {
    const { tenant, owner } = await openLimited(5);
    const people = await Promise.all(Array.from({ length: 64 }, () => newPerson()));
    const answers = await Promise.all(people.map(({ email }) => create(owner, { email })));
    const made = answers.flatMap((answer, at) => (answer.status === 201 ? [{ answer, person: people[at] as Person }] : []));
    expect(winnersOf(answers, "PLAN_LIMIT_EXCEEDED")).toBe(4);
    for (const { answer, person } of made) expect((await accept(person.as, tokenOf(answer))).status).toBe(200);
    const { rows } = await world.sql.query("select count(*)::int as n from memberships where tenant_id = $1", [tenant.tenantId]);
    expect(rows[0].n).toBe(5);
    expect((await create(owner, { email: "one-more@users.example" })).body).toMatchObject({ code: "PLAN_LIMIT_EXCEEDED", details: { limit: 5, used: 5 } });
  });

  test("of one address 16 times at once leaves one pending invite", async () => {
    const { owner } = await open();
    const answers = await Promise.all(Array.from({ length: 16 }, () => create(owner, { email: "same@users.example" })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ body }) => body.code === "INVITE_ALREADY_PENDING")).toHaveLength(15);
  });

  test("is limited to 20 people an hour, whom a batch counts one by one", async () => {
    const { tenant, owner } = await open();
    await world.sql.query("update tenants set rate_limit_overrides = '{}' where tenant_id = $1", [tenant.tenantId]);
    const other = await startWorld({}, { beside: world });
    const there = (count: number) =>
      other.call(owner, "POST", "/v1/invites", { body: { roleId: "viewer", emails: Array.from({ length: count }, () => emailOf(newId("usr"))) } });
    try {
      expect((await there(15)).status).toBe(201);
      const refused = await there(6);
      expect([refused.status, refused.body.details]).toMatchObject([429, { bucket: "invite.create", limit: PER_HOUR, windowSeconds: 3_600 }]);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(3_500);
      expect((await there(5)).status).toBe(201);
      expect((await there(1)).status).toBe(429);
    } finally {
      await other.close();
    }
  });
});

test("links are looked up, accepted and declined at most 10 times a minute from one address", async () => {
  const headers = { "x-forwarded-for": "203.0.113.77" };
  const guess = () => world.call(anonymous, "GET", "/v1/invites/lookup?token=guess", { headers });
  const answers = await Promise.all(Array.from({ length: 11 }, guess));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array.from({ length: 10 }, () => 404), 429]);
});

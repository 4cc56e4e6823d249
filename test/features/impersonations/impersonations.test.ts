// Impersonations: what an administrator of the installation can see and do in a member's name, who learns of it, and that it ends.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract, type Operation, WITHHELD_FROM_IMPERSONATION } from "../../../protocol/index.ts";
import type { AppError } from "../../../server/core/errors.ts";
import type { OpenImpersonation } from "../../../server/core/scope.ts";
import { actorOf, adminIdOf, userIdOf } from "../../../server/core/scope.ts";
import { checkImpersonated, createImpersonationAuth } from "../../../server/gateway/auth/impersonation.ts";
import type { Entry } from "../../../server/gateway/call/operation-table.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { asBearer, type Caller, emailOf, OPERATOR, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { openStream } from "../../kit/net/event-stream.ts";

let world: World;
let operator: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off" }, { inProcess: true });
  operator = await world.operator();
});
afterAll(() => world.close());

interface Started {
  readonly impersonationId: string;
  readonly token: string;
  readonly as: Caller;
}
const start = async ({ tenantId }: TestTenant, more: object = {}): Promise<Started> => {
  const { status, body } = await world.call(operator, "POST", "/v1/admin/impersonations", { body: { tenantId, reason: "ticket 4711", ...more } });
  expect(status).toBe(201);
  return { ...body.data, as: asBearer(body.data.token) };
};
const codeOf = async (as: Caller, method: string, path: string, body?: unknown): Promise<string> => {
  const answer = await world.call(as, method, path, body === undefined ? {} : { body });
  return answer.status < 300 ? String(answer.status) : `${answer.body.code} ${answer.body.details?.reason ?? ""}`.trim();
};
const eventsOf = async ({ tenantId }: TestTenant, type: string): Promise<Record<string, unknown>[]> =>
  (await world.sql.query("select data from outbox_events where tenant_id = $1 and type = $2 order by position", [tenantId, type])).rows.map(({ data }) => data);

describe("an administrator who acts in a member's name", () => {
  test("sees what the member sees, in this tenant only, and is told so", async () => {
    const [tenant, other] = [await world.tenant(), await world.tenant()];
    const device = await tenant.device();
    const viewer = tenant.userId("viewer");
    await tenant.user("viewer");
    const { as, impersonationId } = await start(tenant, { userId: viewer });
    const me = (await world.call(as, "GET", "/v1/auth/me")).body.data;
    expect(me).toMatchObject({ subject: viewer, role: "viewer", tenantId: tenant.tenantId, administrator: false });
    expect(me.memberships).toEqual([{ tenantId: tenant.tenantId, role: "viewer" }]);
    expect(me.impersonation).toMatchObject({ impersonationId, adminId: OPERATOR, readOnly: true });
    expect((await world.call(as, "GET", "/v1/devices")).body.data.map((each: { deviceId: string }) => each.deviceId)).toEqual([device.deviceId]);
    expect(await codeOf({ ...as, headers: () => ({ ...as.headers(""), "x-svc-tenant-id": other.tenantId }) }, "GET", "/v1/devices")).toBe(
      "FORBIDDEN tenant_mismatch",
    );
    expect(await codeOf(as, "GET", "/v1/audit-logs")).toBe("FORBIDDEN");
    expect((await world.call(await tenant.user("viewer"), "GET", "/v1/auth/me")).body.data.impersonation).toBeNull();
  });

  test("changes nothing unless asked for, and never the account, secrets, rights or the installation", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const [reader, writer] = [await start(tenant), await start(tenant, { readOnly: false })];
    const commands = `/v1/devices/${device.deviceId}/commands`;
    const may = async ({ as }: Started): Promise<string[]> => (await world.call(as, "GET", "/v1/auth/me")).body.data.permissions;
    // A console hides what these do not permit.
    expect(await may(reader)).toEqual(expect.arrayContaining(["device:read", "event:read", "audit:read"]));
    expect(await may(reader)).not.toContain("device:command");
    expect(await may(writer)).toContain("device:command");
    expect(await may(writer)).not.toContain("api_key:write");
    expect(await codeOf(reader.as, "POST", commands, { type: "ping" })).toBe("FORBIDDEN impersonation_read_only");
    expect(await codeOf(writer.as, "POST", commands, { type: "ping" })).toBe("201");
    for (const { as } of [reader, writer]) {
      expect(await codeOf(as, "PATCH", "/v1/account", { name: "Mallory" })).toBe("FORBIDDEN impersonation");
      expect(await codeOf(as, "GET", "/v1/account/export")).toBe("FORBIDDEN impersonation");
      expect(await codeOf(as, "POST", "/v1/api-keys", { name: "stays" })).toBe("FORBIDDEN impersonation");
      expect(await codeOf(as, "GET", `/v1/devices/${device.deviceId}/secrets`)).toBe("FORBIDDEN impersonation");
      expect(await codeOf(as, "GET", "/v1/admin/tenants")).toBe("ADMIN_REQUIRED");
      expect(await codeOf(as, "POST", "/v1/admin/impersonations", { tenantId: tenant.tenantId, reason: "again" })).toBe("ADMIN_REQUIRED");
      expect(await codeOf(as, "POST", "/v1/auth/token")).toBe("FORBIDDEN impersonation");
    }
  });

  test("sees and keeps the member's own views, and cannot be the second person who approves", async () => {
    const tenant = await world.tenant();
    const { as } = await start(tenant, { readOnly: false });
    const owner = await tenant.user("owner");
    const view = (name: string) => ({ body: { place: "devices", name, search: "status=offline" } });
    const names = async (caller: Caller): Promise<string[]> =>
      (await world.call(caller, "GET", "/v1/views?sort=name")).body.data.map(({ name }: { name: string }) => name);
    expect((await world.call(owner, "POST", "/v1/views", view("by the owner"))).status).toBe(201);
    expect((await world.call(as, "POST", "/v1/views", view("for the owner"))).status).toBe(201);
    expect(await Promise.all([names(as), names(owner)])).toEqual([
      ["by the owner", "for the owner"],
      ["by the owner", "for the owner"],
    ]);
    expect(await codeOf(as, "POST", "/v1/rollouts/rlt_unknown/approve", {})).toBe("FORBIDDEN impersonation");
  });

  test("uses nothing of the member's rate limit", async () => {
    const tenant = await world.tenant({ unlimited: false });
    const [{ as }, owner] = [await start(tenant), await tenant.user("owner")];
    const left = async (caller: Caller): Promise<number> => Number((await world.call(caller, "GET", "/v1/alert-rules")).headers.get("X-RateLimit-Remaining"));
    const before = await left(owner);
    for (let call = 0; call < 5; call += 1) await left(as);
    expect(await left(owner)).toBe(before - 1);
  });

  test("is held to account for what looks like an attack, and not the member", async () => {
    const [tenant, other] = [await world.tenant(), await world.tenant()];
    const { as } = await start(tenant, { readOnly: false });
    await codeOf({ ...as, headers: () => ({ ...as.headers(""), "x-svc-tenant-id": other.tenantId }) }, "GET", "/v1/devices");
    await eventually(async () => {
      const { rows } = await world.sql.query("select type, entity_id from security_events where tenant_id = $1", [tenant.tenantId]);
      expect(rows).toEqual([{ type: "cross_tenant.attempt", entity_id: OPERATOR }]);
    });
  });

  test("meets the same rules within a batch", async () => {
    const tenant = await world.tenant();
    const { as } = await start(tenant, { readOnly: false });
    const requests = [
      { id: "a", method: "GET", path: "/devices" },
      { id: "b", method: "POST", path: "/api-keys", body: { name: "stays" } },
    ];
    const { responses } = (await world.call(as, "POST", "/v1/batch", { body: { requests } })).body.data;
    expect(responses.map(({ status }: { status: number }) => status)).toEqual([200, 403]);
  });

  test("leaves both names in the audit log, in the history of the record and in the events", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const { as } = await start(tenant, { readOnly: false });
    const both = `admin:${OPERATOR}:user:${tenant.ownerId}`;
    const { commandId } = (await world.call(as, "POST", `/v1/devices/${device.deviceId}/commands`, { body: { type: "ping" } })).body.data;
    await world.call(as, "PATCH", `/v1/devices/${device.deviceId}`, { body: { name: "renamed" } });
    const owner = await tenant.user("owner");
    const { command, events } = (await world.call(owner, "GET", `/v1/commands/${commandId}/timeline`)).body.data;
    expect([command.createdBy, command.actor.id, events[0].by.id]).toEqual([both, both, both]);
    expect(command.actor.name).toBe(`${OPERATOR} for ${emailOf(tenant.ownerId)}`);
    const logs = (await world.call(owner, "GET", "/v1/audit-logs")).body.data as { action: string; actor: { type: string; id: string; name: string } }[];
    expect(logs.filter(({ actor }) => actor.type === "impersonator").map(({ action, actor: { id } }) => `${action} ${id}`)).toContain(`devices.update ${both}`);
    expect(logs.map(({ action, actor: { type, id } }) => `${action} ${type} ${id}`)).toContain(`impersonations.start operator ${OPERATOR}`);
    expect((await eventsOf(tenant, "impersonation.started"))[0]).toMatchObject({ adminId: OPERATOR, userId: tenant.ownerId, reason: "ticket 4711" });
  });
});

describe("an impersonation ends", () => {
  const ends = {
    "by the administrator": (_tenant: TestTenant, { impersonationId }: Started) =>
      world.call(operator, "POST", `/v1/admin/impersonations/${impersonationId}/end`),
    "by the tenant": async (tenant: TestTenant, { impersonationId }: Started) =>
      world.call(await tenant.user("admin"), "POST", `/v1/impersonations/${impersonationId}/end`),
    "by its sign-out": (_tenant: TestTenant, { as }: Started) => world.call(as, "POST", "/v1/auth/logout"),
  };
  test.each(Object.entries(ends))("%s, and the next call and its stream are refused", async (_, end) => {
    const tenant = await world.tenant();
    const started = await start(tenant);
    const { ticket } = (await world.call(started.as, "POST", "/v1/auth/stream-ticket")).body.data;
    const unused = (await world.call(started.as, "POST", "/v1/auth/stream-ticket")).body.data.ticket;
    const stream = await openStream(world.url, { ticket });
    const answer = await end(tenant, started);
    expect(answer.status).toBe(200);
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(await codeOf(started.as, "GET", "/v1/devices")).toBe("UNAUTHORIZED impersonation_ended");
    await stream.ended;
    await expect(openStream(world.url, { ticket: unused })).rejects.toThrow();
    expect(await eventsOf(tenant, "impersonation.ended")).toHaveLength(1);
    const { rows } = await world.sql.query("select ended_by from impersonations where impersonation_id = $1", [started.impersonationId]);
    // A second end is no change.
    expect((await world.call(operator, "POST", `/v1/admin/impersonations/${started.impersonationId}/end`)).body.data.endedBy).toBe(rows[0].ended_by);
    expect(await eventsOf(tenant, "impersonation.ended")).toHaveLength(1);
  });

  test("when its time is over, and a job tells so", async () => {
    const tenant = await world.tenant();
    const { as, impersonationId } = await start(tenant, { minutes: 1 });
    expect(await codeOf(as, "GET", "/v1/devices")).toBe("200");
    await world.sql.query("update impersonations set started_at = now() - interval '1 minute', expires_at = now() where impersonation_id = $1", [
      impersonationId,
    ]);
    expect(await codeOf(as, "GET", "/v1/devices")).toBe("UNAUTHORIZED impersonation_ended");
    await runJob(world, "impersonations.expire");
    expect((await eventsOf(tenant, "impersonation.ended"))[0]).toMatchObject({ impersonationId, endedBy: "system" });
  });

  test("when the member is none any more, or the administrator", async () => {
    const tenant = await world.tenant();
    await tenant.user("viewer");
    const { as } = await start(tenant, { userId: tenant.userId("viewer") });
    const owner = await tenant.user("owner");
    const { body } = await world.call(owner, "GET", "/v1/members");
    const { memberId } = body.data.find(({ userId }: { userId: string }) => userId === tenant.userId("viewer"));
    await world.call(owner, "DELETE", `/v1/members/${memberId}`);
    expect(await codeOf(as, "GET", "/v1/devices")).toBe("FORBIDDEN not_a_member");
    const found = { adminId: "root" } as OpenImpersonation; // as: the rule reads no more
    const auth = (admins: string[]) => createImpersonationAuth({ find: async () => found, byId: async () => found }, new Set(admins));
    expect(await auth(["root"]).require("imp_1")).toBe(found);
    await expect(auth([]).require("imp_1")).rejects.toMatchObject({ details: { reason: "impersonation_ended" } });
  });

  test("90 days and more later its row is still there, and after 400 days it is not", async () => {
    const tenant = await world.tenant();
    const [recent, old] = [await start(tenant), await start(tenant)];
    const overFor = (id: string, days: number) =>
      world.sql.query("update impersonations set ended_at = now() - make_interval(days => $2) where impersonation_id = $1", [id, days]);
    await overFor(recent.impersonationId, 399);
    await overFor(old.impersonationId, 401);
    await runJob(world, "impersonations.delete-ended");
    expect(await codeOf(operator, "GET", `/v1/admin/impersonations/${recent.impersonationId}`)).toBe("200");
    expect(await codeOf(operator, "GET", `/v1/admin/impersonations/${old.impersonationId}`)).toBe("IMPERSONATION_NOT_FOUND");
  });
});

describe("who may begin one", () => {
  test("is an administrator of the installation, in the name of a member of a tenant that there is, for an hour at most", async () => {
    const [tenant, other] = [await world.tenant(), await world.tenant()];
    const ask = (as: Caller, more: object) => codeOf(as, "POST", "/v1/admin/impersonations", { tenantId: tenant.tenantId, reason: "why", ...more });
    expect(await ask(await tenant.user("owner"), {})).toBe("ADMIN_REQUIRED");
    expect(await ask(operator, { minutes: 61 })).toBe("VALIDATION_FAILED");
    expect(await ask(operator, { reason: "  " })).toBe("VALIDATION_FAILED");
    expect(await ask(operator, { userId: other.ownerId })).toBe("MEMBER_NOT_FOUND");
    expect(await ask(operator, { tenantId: "ten_unknown" })).toBe("TENANT_NOT_FOUND");
    const longer = world.sql.query("update impersonations set expires_at = started_at + interval '61 minutes' where impersonation_id = $1", [
      (await start(tenant)).impersonationId,
    ]);
    await expect(longer).rejects.toThrow("impersonations_bounded");
  });

  test("and a tenant sees and ends only its own", async () => {
    const [tenant, other] = [await world.tenant(), await world.tenant()];
    const { impersonationId } = await start(tenant);
    const [own, foreign] = [await tenant.user("owner"), await other.user("owner")];
    expect((await world.call(own, "GET", "/v1/impersonations?open=true")).body.data).toMatchObject([{ impersonationId, reason: "ticket 4711" }]);
    expect((await world.call(foreign, "GET", "/v1/impersonations")).body.data).toEqual([]);
    expect(await codeOf(foreign, "POST", `/v1/impersonations/${impersonationId}/end`)).toBe("IMPERSONATION_NOT_FOUND");
    expect((await world.call(operator, "GET", `/v1/admin/impersonations?tenant=${tenant.tenantId}`)).body.data).toHaveLength(1);
  });
});

describe("the rules", () => {
  const entries = Object.entries(contract).flatMap(
    ([group, { operations }]) => Object.entries(operations as Record<string, Operation>).map(([name, op]) => ({ id: `${group}.${name}`, op }) as Entry), // as: the rule reads no more
  );
  const allows = (entry: Entry, readOnly: boolean): boolean => {
    try {
      checkImpersonated(entry, { readOnly } as OpenImpersonation); // as: the rule reads no more
      return true;
    } catch (error) {
      expect(["FORBIDDEN", "ADMIN_REQUIRED"]).toContain((error as AppError).code);
      return false;
    }
  };

  test("a read-only impersonation may make these mutations and no others", () => {
    const may = entries.filter((entry) => entry.op.kind === "mutation" && entry.op.auth.includes("user") && allows(entry, true)).map(({ id }) => id);
    expect(may.sort()).toEqual(["batch.run", "general.streamTicket", "sessions.logout"]);
  });

  test("no operation that shows a secret once is allowed, whatever was asked for", () => {
    const shows = /"(apiKey|secret|token|shared_secret|password|activation_token|accessToken)"/;
    const secret = entries.filter(
      ({ op }) => op.auth.includes("user") && shows.test(JSON.stringify(Object.keys((op.output as { shape?: object }).shape ?? {}))),
    );
    expect(secret.length).toBeGreaterThan(5);
    expect(secret.filter((entry) => allows(entry, false)).map(({ id }) => id)).toEqual([]);
  });

  test("what is withheld are permissions that members have, and enough is left to look around", () => {
    const reads = entries.filter(({ op }) => op.kind === "query" && op.auth.includes("user") && op.tenancy === "tenant");
    expect(reads.filter((entry) => allows(entry, true)).length).toBeGreaterThan(0.8 * reads.length);
    expect(WITHHELD_FROM_IMPERSONATION.size).toBeGreaterThan(20);
  });

  test("an actor names both for certain, whatever they are called", () => {
    const name = fc.string({ unit: "binary", minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(name, name, (adminId, userId) => {
        const person = { kind: "user", userId, email: null, role: null, permissions: new Set<never>(), limits: [] } as const;
        const both = actorOf({ ...person, impersonator: { adminId, impersonation: null } });
        expect([adminIdOf(both), userIdOf(both)]).toEqual([adminId, userId]);
        expect([adminIdOf(actorOf(person)), userIdOf(actorOf(person))]).toEqual([null, userId]);
        const forged = actorOf({ ...person, userId: both });
        expect([adminIdOf(forged), userIdOf(forged)]).toEqual([null, both]);
      }),
    );
  });
});

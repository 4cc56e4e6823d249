// Ranks: an admin blocks, frees, revokes and changes nobody who may do more, whatever kind of credential that is.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BlockedType } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { asKey, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
/** An admin, as a person and by a key. */
let admins: readonly Caller[];
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_INVITES: "off" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  admins = [await tenant.user("admin"), asKey((await newKey("admin"))["apiKey"] ?? "", tenant.tenantId)];
});
afterAll(() => world.close());

const call = async (as: Caller, method: string, path: string, body?: object): Promise<readonly [number, string | null]> => {
  const answer = await world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
  return [answer.status, answer.body?.code ?? null];
};
const made = async (path: string, body: object): Promise<Record<string, string>> => {
  const answer = await world.call(owner, "POST", `/v1${path}`, { body });
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  return answer.body.data;
};
const newKey = (role: string, more: object = {}) => made("/api-keys", { name: newId("key"), role, ...more });
const newMember = async (role: string): Promise<string> => {
  const userId = newId("usr");
  await world.app.mint({ userId, tenantId: tenant.tenantId, role: role as "owner", ttlSeconds: 600 });
  return userId;
};
const block = (as: Caller, entityType: BlockedType, entityValue: string) =>
  call(as, "POST", "/security/blocked-entities", { entityType, entityValue, reason: "test" });
const REFUSED = [403, "PRIVILEGE_ESCALATION"];

let addresses = 0;
/** One of each kind that may do more than an admin, and one that may not; null where no rank exists. */
const KINDS: { readonly [Kind in BlockedType]: { readonly above: (() => Promise<string>) | null; readonly equal: () => Promise<string> } } = {
  user: { above: () => newMember("owner"), equal: () => newMember("admin") },
  key: { above: async () => (await newKey("owner"))["keyId"] ?? "", equal: async () => (await newKey("owner", { scopes: ["device:read"] }))["keyId"] ?? "" },
  device: { above: null, equal: async () => (await tenant.device()).deviceId },
  ip: {
    above: null,
    equal: async () => {
      addresses += 1;
      return `203.0.113.${addresses}`;
    },
  },
};

test.each(Object.entries(KINDS).filter(([, { above }]) => above !== null))("a %s that may do more cannot be blocked by an admin", async (kind, { above }) => {
  for (const admin of admins) expect(await block(admin, kind as BlockedType, (await above?.()) ?? "")).toEqual(REFUSED); // as: a key of the record
});

describe.each(Object.entries(KINDS))("of the kind %s", (kind, { equal }) => {
  const type = kind as BlockedType; // as: a key of the record
  test("one who may do no more can be blocked and freed by an admin", async () => {
    for (const admin of admins) {
      const value = await equal();
      const { status, body } = await world.call(admin, "POST", "/v1/security/blocked-entities", {
        body: { entityType: type, entityValue: value, reason: "test" },
      });
      expect(status).toBe(201);
      expect(await call(admin, "DELETE", `/security/blocked-entities/${body.data.id}`)).toEqual([204, null]);
    }
  });

  test("one whom the owner has blocked cannot be freed by an admin", async () => {
    const { id } = await made("/security/blocked-entities", { entityType: type, entityValue: await equal(), reason: "test" });
    for (const admin of admins) expect(await call(admin, "DELETE", `/security/blocked-entities/${id}`)).toEqual(REFUSED);
    expect(await call(owner, "DELETE", `/security/blocked-entities/${id}`)).toEqual([204, null]);
  });
});

describe("an admin neither changes nor ends", () => {
  const admin = (): Caller => admins[0] ?? owner;

  test("a key that may do more", async () => {
    const { keyId } = await newKey("owner");
    expect(await call(admin(), "PATCH", `/api-keys/${keyId}`, { ipAllowlist: ["192.0.2.1/32"] })).toEqual(REFUSED);
    expect(await call(admin(), "PATCH", `/api-keys/${keyId}`, { scopes: ["device:read"] })).toEqual(REFUSED);
    expect(await call(admin(), "POST", `/api-keys/${keyId}/rotate`, {})).toEqual(REFUSED);
    expect(await call(admin(), "DELETE", `/api-keys/${keyId}`)).toEqual(REFUSED);
    expect(await call(owner, "DELETE", `/api-keys/${keyId}`)).toEqual([204, null]);
    expect(await call(admin(), "DELETE", `/api-keys/${(await newKey("operator"))["keyId"]}`)).toEqual([204, null]);
  });

  test("an invite to a role that may do more", async () => {
    const { inviteId } = await made("/invites", { email: `${newId("u").toLowerCase()}@users.example`, roleId: "owner" });
    expect(await call(admin(), "POST", `/invites/${inviteId}/resend`, {})).toEqual(REFUSED);
    expect(await call(admin(), "DELETE", `/invites/${inviteId}`)).toEqual(REFUSED);
    expect(await call(owner, "DELETE", `/invites/${inviteId}`)).toEqual([204, null]);
  });

  test("a member who may do more", async () => {
    const userId = await newMember("owner");
    const { rows } = await world.sql.query("select member_id from memberships where user_id = $1", [userId]);
    expect(await call(admin(), "PATCH", `/members/${rows[0].member_id}`, { roleId: "viewer" })).toEqual(REFUSED);
    expect(await call(admin(), "DELETE", `/members/${rows[0].member_id}`)).toEqual(REFUSED);
  });
});

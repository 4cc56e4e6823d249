// Machines that wait for a person: with a token that needs approval, or because somebody looked up their code.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, anonymous, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_PAIRING: "off", DATABASE_POOL: "16" });
});
afterAll(() => world.close());

const post = (as: Caller, path: string, body: object = {}): Promise<Answer> => world.call(as, "POST", `/v1/pairing${path}`, { body });
const codeOf = ({ status, body }: Answer) => [status, body?.code ?? "done"];
const createToken = async (owner: Caller, more: object = {}) =>
  (await post(owner, "/enrollment-tokens", { name: "asks", approval: "required", ...more })).body.data as { token: string; tokenId: string };
const initiate = async (fingerprint: string = randomUUID()) => {
  const { body } = await post(anonymous, "/initiate", { device_fingerprint: fingerprint, device_name: "box", platform: "linux" });
  return { code: body.data.pairing_code as string, pollToken: body.data.pollToken as string, comparison: body.data.comparison as string, fingerprint };
};
type Machine = Awaited<ReturnType<typeof initiate>>;
const ask = ({ token }: { readonly token: string }, { code }: Machine) => post(anonymous, "/auto-activate", { enrollment_token: token, pairing_code: code });
const collect = ({ code, fingerprint, pollToken }: Machine) =>
  post(anonymous, "/collect", { pairing_code: code, device_fingerprint: fingerprint, pollToken }).then(({ body }) => body.data);
const waiting = async (as: Caller): Promise<Record<string, unknown>[]> => (await world.call(as, "GET", "/v1/pairing/requests")).body.data;
const usesOf = async (as: Caller, tokenId: string): Promise<number> => {
  const { body } = await world.call(as, "GET", "/v1/pairing/enrollment-tokens");
  return body.data.find((each: { tokenId: string }) => each.tokenId === tokenId).uses;
};
const eventsOf = async ({ tenantId }: TestTenant) =>
  (await world.sql.query("select data from outbox_events where type = 'pairing.requested' and tenant_id = $1", [tenantId])).rows.map(({ data }) => data);
const open = async () => {
  const tenant = await world.tenant();
  return { tenant, owner: await tenant.user() };
};
/** A machine that waits with this token. */
const wait = async (owner: Caller, token: { readonly token: string }, fingerprint?: string) => {
  const machine = await initiate(fingerprint);
  expect(codeOf(await ask(token, machine))).toEqual([409, "PAIRING_APPROVAL_REQUIRED"]);
  const request = (await waiting(owner)).find(({ device }) => (device as Machine).fingerprint === machine.fingerprint);
  return { ...machine, requestId: request?.["requestId"] as string };
};

describe("a token that needs approval", () => {
  test("pairs no machine by itself: the machine waits in the list of the tenant, is told of once, and is paired by a person's approval", async () => {
    const { tenant, owner } = await open();
    const token = await createToken(owner, { tags: ["site:lisbon"] });
    const machine = await initiate();
    for (let n = 0; n < 2; n += 1) expect(codeOf(await ask(token, machine))).toEqual([409, "PAIRING_APPROVAL_REQUIRED"]);
    expect([await collect(machine), await usesOf(owner, token.tokenId)]).toEqual([expect.objectContaining({ status: "pending" }), 0]);
    const [request, ...others] = await waiting(owner);
    expect([request, others]).toMatchObject([
      { tokenId: token.tokenId, device: { fingerprint: machine.fingerprint, name: "box" }, comparison: machine.comparison },
      [],
    ]);
    const { requestId, expiresAt } = request ?? {};
    expect(await eventsOf(tenant)).toEqual([
      { requestId, tokenId: token.tokenId, deviceName: "box", platform: "linux", fingerprint: machine.fingerprint, expiresAt },
    ]);
    const approved = await post(owner, "/approve", { requestId, tags: ["rack"] });
    expect(approved.status).toBe(201);
    const { identity } = await collect(machine);
    const device = await world.call(owner, "GET", `/v1/devices/${identity.device_id}`);
    expect(device.body.data.tags).toEqual(["site:lisbon", "rack"]);
    expect([await waiting(owner), await usesOf(owner, token.tokenId)]).toEqual([[], 1]);
  });

  test("pairs no more machines than it may, however many wait and are approved at once, and a rejected one uses up none", async () => {
    const { owner } = await open();
    const token = await createToken(owner, { maxUses: 2 });
    const rejected = await wait(owner, token);
    expect(codeOf(await post(owner, "/reject", { requestId: rejected.requestId }))).toEqual([204, "done"]);
    expect((await collect(rejected)).status).toBe("rejected");
    const machines = [await wait(owner, token), await wait(owner, token), await wait(owner, token), await wait(owner, token)];
    const answers = await Promise.all(machines.map(({ requestId }) => post(owner, "/approve", { requestId })));
    expect(answers.map(codeOf).toSorted()).toEqual([
      [201, "done"],
      [201, "done"],
      [409, "ENROLLMENT_TOKEN_EXHAUSTED"],
      [409, "ENROLLMENT_TOKEN_EXHAUSTED"],
    ]);
    expect(await usesOf(owner, token.tokenId)).toBe(2);
    expect(codeOf(await ask(token, await initiate()))).toEqual([409, "ENROLLMENT_TOKEN_EXHAUSTED"]);
  });

  test("that is revoked ends the waiting of its machines, and one that ends takes its machines along", async () => {
    const { owner } = await open();
    const [revoked, short] = [await createToken(owner), await createToken(owner, { expiresInSeconds: 60 })];
    const machine = await wait(owner, revoked);
    await wait(owner, short);
    expect((await waiting(owner)).map(({ expiresAt }) => Date.parse(String(expiresAt)) - Date.now() <= 60_000)).toEqual([true, false]);
    expect((await world.call(owner, "DELETE", `/v1/pairing/enrollment-tokens/${revoked.tokenId}`)).status).toBe(204);
    expect(await waiting(owner)).toHaveLength(1);
    expect((await collect(machine)).status).toBe("expired");
    expect(codeOf(await post(owner, "/approve", { requestId: machine.requestId }))).toEqual([409, "PAIRING_CODE_EXPIRED"]);
    expect(codeOf(await ask(revoked, await initiate()))).toEqual([401, "ENROLLMENT_TOKEN_INVALID"]);
  });

  test("revoked at the moment of the approval, it has either paired the machine or ended its waiting", async () => {
    const { owner } = await open();
    for (let n = 0; n < 4; n += 1) {
      const token = await createToken(owner);
      const machine = await wait(owner, token);
      const [approved, revoked] = await Promise.all([
        post(owner, "/approve", { requestId: machine.requestId }),
        world.call(owner, "DELETE", `/v1/pairing/enrollment-tokens/${token.tokenId}`),
      ]);
      expect([revoked.status, (await collect(machine)).status]).toEqual([204, approved.status === 201 ? "activated" : "expired"]);
    }
  });

  test("does not let a machine wait for the identity of a device, unless it allows repairs or the device is in repair, and the person confirms", async () => {
    const { tenant, owner } = await open();
    const { deviceId, fingerprint } = await tenant.device();
    const [plain, repairs] = [await createToken(owner), await createToken(owner, { allowRepair: true })];
    expect(codeOf(await ask(plain, await initiate(fingerprint)))).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
    expect(await waiting(owner)).toEqual([]);
    const { requestId } = await wait(owner, repairs, fingerprint);
    expect(await waiting(owner)).toMatchObject([{ existingDevice: { deviceId } }]);
    expect(codeOf(await post(owner, "/approve", { requestId }))).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
    expect(await usesOf(owner, repairs.tokenId)).toBe(0);
    await world.call(owner, "POST", `/v1/devices/${deviceId}/repair`);
    const machine = await wait(owner, plain, fingerprint);
    expect(codeOf(await post(owner, "/approve", { requestId: machine.requestId, replaces: deviceId }))).toEqual([201, "done"]);
    expect((await collect(machine)).identity.device_id).toBe(deviceId);
  });

  test("is not for a machine that another tenant has claimed, and its machines are unknown to every other tenant", async () => {
    const [mine, theirs] = [await open(), await open()];
    const [token, foreign] = [await createToken(mine.owner), await createToken(theirs.owner)];
    const machine = await wait(mine.owner, token);
    expect(codeOf(await ask(foreign, machine))).toEqual([404, "PAIRING_CODE_NOT_FOUND"]);
    expect(await waiting(theirs.owner)).toEqual([]);
    for (const path of ["/approve", "/reject"]) {
      const answers = [await post(theirs.owner, path, { requestId: machine.requestId }), await post(theirs.owner, path, { requestId: "par_unknown" })];
      expect(answers.map(codeOf)).toEqual(Array(2).fill([404, "PAIRING_CODE_NOT_FOUND"]));
    }
    expect(await eventsOf(theirs.tenant)).toEqual([]);
    expect(codeOf(await post(mine.owner, "/approve", { requestId: machine.requestId }))).toEqual([201, "done"]);
  });

  test("is not created where people cannot approve machines", async () => {
    const { tenant, owner } = await open();
    const operator = await world.operator();
    await world.call(operator, "PUT", "/v1/admin/flags/browserPairing", { body: { enabled: false, tenantId: tenant.tenantId } });
    const refused = await post(owner, "/enrollment-tokens", { name: "asks", approval: "required" });
    expect([codeOf(refused), refused.body.details]).toEqual([[403, "FORBIDDEN"], { reason: "feature_disabled", feature: "browserPairing" }]);
  });
});

describe("a machine without a token", () => {
  test("is listed once somebody has looked up its code, for that tenant alone, until its own token names another", async () => {
    const [mine, theirs] = [await open(), await open()];
    const machine = await initiate();
    expect(await waiting(mine.owner)).toEqual([]);
    for (const { owner } of [mine, theirs]) expect((await world.call(owner, "GET", `/v1/pairing/lookup?code=${machine.code}`)).status).toBe(200);
    expect([await waiting(mine.owner), await waiting(theirs.owner)]).toMatchObject([[{ tokenId: null, comparison: machine.comparison }], []]);
    expect(codeOf(await ask(await createToken(theirs.owner), machine))).toEqual([409, "PAIRING_APPROVAL_REQUIRED"]);
    expect([await waiting(mine.owner), await waiting(theirs.owner)]).toMatchObject([[], [{ comparison: machine.comparison }]]);
  });

  test("is named either by its code or by its request", async () => {
    const { owner } = await open();
    const { code } = await initiate();
    for (const named of [{}, { code, requestId: "par_unknown" }]) expect(codeOf(await post(owner, "/approve", named))).toEqual([400, "VALIDATION_FAILED"]);
  });
});

// Pairing: one code makes one device, wrong tokens are few, and only entitled callers learn ids.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EnrollmentStep, StepStatus } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { anyone, failureOf, inside, userOf } from "../../kit/gateway/call.ts";
import { openTenancy, PORTAL, type Tenancy } from "../tenants/tenancy-kit.ts";

let world: Tenancy;
beforeAll(async () => {
  world = await openTenancy();
});
afterAll(() => world.close());

type Owner = Awaited<ReturnType<Tenancy["newTenant"]>>;
const as = ({ tenantId, userId, email }: Owner) => inside(tenantId, userOf(userId, email, "owner"));
const initiate = async (fingerprint: string = randomUUID(), ip?: string) => ({
  fingerprint,
  ...(await world.call.pairing.initiate(anyone(ip), { device_fingerprint: fingerprint, device_name: "box", platform: "linux" })),
});
const prepare = (owner: Owner, pairing_code: string, replaceExisting = false) =>
  world.call.pairing.prepareActivation(as(owner), { pairing_code, tenant_id: owner.tenantId, replaceExisting });
const prepared = async (owner: Owner, fingerprint?: string, replaceExisting?: boolean) => {
  const { pairing_code, fingerprint: own } = await initiate(fingerprint);
  const { activation_token } = await prepare(owner, pairing_code, replaceExisting);
  return { fingerprint: own, request: { pairing_code, activation_token, user_email: owner.email } };
};
const activate = (request: { pairing_code: string; activation_token: string; user_email: string; return_to?: string }) =>
  world.call.pairing.activate(anyone(), request);
const createToken = (owner: Owner, given: object = {}) => world.call.pairing.createToken(as(owner), { name: "t", ...given });
const enroll = async (enrollment_token: string, ip?: string) =>
  world.call.pairing.autoActivate(anyone(ip), { enrollment_token, pairing_code: (await initiate()).pairing_code });
const defaultDeployment = async ({ tenantId }: Owner): Promise<string | undefined> =>
  (await world.db.query<{ id: string }>("select deployment_id as id from deployments where tenant_id = $1 and is_default", [tenantId]))[0]?.id;
const makeOld = (code: string, column: string, by: string) =>
  world.db.query(`update pairings set ${column} = ${column} - $2::interval where code_hash = sha256($1::text::bytea)`, [code.replace("-", ""), by]);

describe("pairing codes", () => {
  test("a code is eight readable letters and links to the portal", async () => {
    const before = systemClock.now().getTime();
    const { pairing_code, portal_url, expires_at } = await initiate();
    expect(pairing_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(portal_url).toBe(`${PORTAL}/pair?code=${pairing_code}`);
    expect(Date.parse(expires_at)).toBeGreaterThanOrEqual(before + 14 * 60_000);
  });

  test("a code and its activation token are stored only as hashes", async () => {
    const { request } = await prepared(await world.newTenant());
    const rows = JSON.stringify(await world.db.query("select * from pairings"));
    expect(rows).not.toContain(request.pairing_code.replace("-", ""));
    expect(rows).not.toContain(request.activation_token);
  });

  test("a code may be typed in any case and with any separators", async () => {
    const owner = await world.newTenant();
    const { pairing_code, fingerprint } = await initiate();
    const typed = ` ${pairing_code.toLowerCase().replace("-", " . ")}`;
    expect(await prepare(owner, typed)).toMatchObject({ device: { fingerprint, name: "box", platform: "linux", initiatedFrom: "192.0.2.1" } });
  });

  test("an impossible code is answered as unknown", async () => {
    const owner = await world.newTenant();
    for (const code of ["AEIO-UAEI", "BCD", "BCDF-GHJK", "1234-5678"])
      expect(await failureOf(prepare(owner, code))).toMatchObject({ code: "PAIRING_CODE_NOT_FOUND", status: 404 });
  });

  test("of six codes that a device asks for at once, one lives", async () => {
    const owner = await world.newTenant();
    const fingerprint = randomUUID();
    const all = await Promise.all(Array.from({ length: 6 }, () => initiate(fingerprint)));
    const outcomes = await Promise.all(
      all.map(({ pairing_code }) =>
        prepare(owner, pairing_code).then(
          () => "live",
          async (error: unknown) => (await failureOf(Promise.reject(error))).code,
        ),
      ),
    );
    expect(outcomes.toSorted()).toEqual([...Array.from({ length: 5 }, () => "PAIRING_CODE_EXPIRED"), "live"]);
  });

  test("a code expires after 15 minutes, with or without the sweep, and is forgotten after eight days", async () => {
    const owner = await world.newTenant();
    const { request, fingerprint } = await prepared(owner);
    await makeOld(request.pairing_code, "expires_at", "15 minutes");
    for (let round = 0; round < 2; round += 1) {
      expect(await failureOf(activate(request))).toMatchObject({ code: "PAIRING_CODE_EXPIRED", status: 409 });
      expect(await failureOf(prepare(owner, request.pairing_code))).toMatchObject({ code: "PAIRING_CODE_EXPIRED" });
      expect(await world.call.pairing.status(anyone(), { device_fingerprint: fingerprint })).toMatchObject({ status: "expired" });
      for (const job of world.pairing.jobs) await job.run(new AbortController().signal);
    }
    await makeOld(request.pairing_code, "expires_at", "8 days");
    for (const job of world.pairing.jobs) await job.run(new AbortController().signal);
    expect(await world.call.pairing.status(anyone(), { device_fingerprint: fingerprint })).toMatchObject({ status: "not_found" });
  });
});

describe("activation", () => {
  test("activation gives the device its identity, its secret and its addresses, once", async () => {
    const owner = await world.newTenant();
    const { request, fingerprint } = await prepared(owner);
    const device = await activate({ ...request, return_to: `${PORTAL}/devices` });
    expect(device).toEqual({
      device_id: expect.stringMatching(/^dev_/),
      agent_id: expect.stringMatching(/^agt_/),
      tenant_id: owner.tenantId,
      shared_secret: expect.any(String),
      fingerprint,
      return_to: `${PORTAL}/devices`,
      connect: { url: "wss://api.example/v1/agent/connect", coldStartMs: 30_000 },
      infrastructure_secrets: {
        TENANT_ID: owner.tenantId,
        DEVICE_ID: device.device_id,
        AGENT_ID: device.agent_id,
        API_URL: "https://api.example",
        SOCKET_URL: "wss://api.example/v1/agent/connect",
      },
    });
    expect((await world.events(device.device_id)).map(({ data }) => data)).toContainEqual({
      deviceId: device.device_id,
      deviceName: "box",
      fingerprint,
      status: "activated",
    });
    expect(await failureOf(activate(request))).toMatchObject({ code: "PAIRING_ALREADY_ACTIVATED" });
    expect(await failureOf(prepare(owner, request.pairing_code))).toMatchObject({ code: "PAIRING_ALREADY_ACTIVATED" });
  });

  test("a hundred activations at once make one device", async () => {
    const { request, fingerprint } = await prepared(await world.newTenant());
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, () =>
        activate(request).then(
          () => "device",
          async (error: unknown) => (await failureOf(Promise.reject(error))).code,
        ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === "device")).toHaveLength(1);
    expect(new Set(outcomes)).toEqual(new Set(["device", "PAIRING_ALREADY_ACTIVATED"]));
    expect(await world.db.query("select 1 from devices where fingerprint = $1", [fingerprint])).toHaveLength(1);
  });

  test("the fifth wrong token ends the code", async () => {
    const { request } = await prepared(await world.newTenant());
    for (const attemptsLeft of [4, 3, 2, 1, 0]) {
      expect(await failureOf(activate({ ...request, activation_token: "wrong" }))).toEqual({
        code: "ACTIVATION_TOKEN_INVALID",
        status: 401,
        details: { attemptsLeft },
      });
    }
    expect(await failureOf(activate(request))).toMatchObject({ code: "PAIRING_CODE_EXPIRED" });
  });

  test("activation needs the latest token, within five minutes, from a user who may still pair", async () => {
    const owner = await world.newTenant();
    const { request } = await prepared(owner);
    const { activation_token } = await prepare(owner, request.pairing_code);
    expect(await failureOf(activate(request))).toMatchObject({ code: "ACTIVATION_TOKEN_INVALID" });
    await makeOld(request.pairing_code, "activation_token_expires_at", "5 minutes");
    expect(await failureOf(activate({ ...request, activation_token }))).toMatchObject({ code: "ACTIVATION_TOKEN_INVALID" });

    const left = await world.newTenant();
    const { request: orphaned } = await prepared(left);
    await world.db.query("delete from memberships where tenant_id = $1", [left.tenantId]);
    expect(await failureOf(activate(orphaned))).toMatchObject({ code: "ACTIVATION_TOKEN_INVALID", details: { reason: "user_may_not_pair" } });
  });

  test("only an admin may activate in another user's name", async () => {
    const owner = await world.newTenant();
    const operator = { ...owner, userId: await world.join(owner.tenantId, "operator"), email: "op@users.example" };
    const { request } = await prepared(operator);
    expect(await failureOf(activate({ ...request, user_email: "else@users.example" }))).toMatchObject({
      code: "FORBIDDEN",
      details: { reason: "user_email_mismatch" },
    });
    expect(await activate({ ...request, user_email: "OP@users.example" })).toMatchObject({ tenant_id: owner.tenantId });
    const { request: byOwner } = await prepared(owner);
    expect(await activate({ ...byOwner, user_email: "else@users.example" })).toMatchObject({ tenant_id: owner.tenantId });
  });

  test("a return address leads only to the portal and the listed hosts", async () => {
    const { request } = await prepared(await world.newTenant());
    for (const return_to of [
      "https://evil.example/",
      "http://app.example/",
      "https://app.example:444/",
      "https://portal.example@evil.example/",
      "https://u:p@app.example/",
      "javascript:alert(1)",
      `${PORTAL}.evil.example/`,
    ]) {
      expect(await failureOf(activate({ ...request, return_to })), return_to).toMatchObject({ code: "RETURN_URL_NOT_ALLOWED", status: 422 });
    }
    expect(await activate({ ...request, return_to: "https://app.example/x" })).toMatchObject({ return_to: "https://app.example/x" });
  });

  test("a full plan or a suspended tenant refuses the activation, which succeeds once the plan allows it", async () => {
    const owner = await world.newTenant();
    await world.db.query(`update tenants set limit_overrides = '{"hosts": 0}' where tenant_id = $1`, [owner.tenantId]);
    const { request } = await prepared(owner);
    expect(await failureOf(activate(request))).toMatchObject({ code: "PLAN_LIMIT_EXCEEDED" });
    await world.db.query("update tenants set limit_overrides = '{}' where tenant_id = $1", [owner.tenantId]);
    expect(await activate(request)).toMatchObject({ tenant_id: owner.tenantId });

    const suspended = await world.newTenant();
    const { request: later } = await prepared(suspended);
    await world.db.query("update tenants set status = 'suspended' where tenant_id = $1", [suspended.tenantId]);
    expect(await failureOf(activate(later))).toMatchObject({ code: "TENANT_SUSPENDED" });
  });

  test("nobody can prepare an activation for another tenant, which looks like an unknown one", async () => {
    const [mine, theirs] = [await world.newTenant(), await world.newTenant()];
    const { pairing_code } = await initiate();
    expect(await failureOf(world.call.pairing.prepareActivation(as(mine), { pairing_code, tenant_id: theirs.tenantId }))).toEqual({
      code: "TENANT_NOT_FOUND",
      status: 404,
      details: { tenantId: theirs.tenantId },
    });
  });
});

describe("fingerprint status", () => {
  test("status shows ids only to the holder of the code and, for 15 minutes, to the address that asked for it", async () => {
    const owner = await world.newTenant();
    const fingerprint = randomUUID();
    const look = (ip: string, pairing_code?: string) =>
      world.call.pairing.status(anyone(ip), { device_fingerprint: fingerprint, ...(pairing_code === undefined ? {} : { pairing_code }) });
    expect(await look("192.0.2.1")).toEqual({ status: "not_found", pollAfterSeconds: 6 });
    const { request } = await prepared(owner, fingerprint);
    expect(await look("192.0.2.1", request.pairing_code)).toEqual({ status: "pending", pollAfterSeconds: 6 });
    const { device_id, agent_id } = await activate(request);
    const full = { status: "activated", tenant_id: owner.tenantId, agent_id, device_id, pollAfterSeconds: 6 };
    const bare = { status: "activated", pollAfterSeconds: 6 };
    expect(await look("192.0.2.1")).toEqual(full);
    expect(await look("198.51.100.7")).toEqual(bare);
    expect(await look("198.51.100.7", request.pairing_code)).toEqual(full);
    expect(await look("198.51.100.7", (await initiate()).pairing_code)).toEqual(bare);
    await makeOld(request.pairing_code, "activated_at", "15 minutes");
    expect(await look("192.0.2.1")).toEqual(bare);
  });
});

describe("enrollment tokens", () => {
  test("a token is shown once, stored as a hash, and gives the device its tags and deployment", async () => {
    const owner = await world.newTenant();
    const deployment = await defaultDeployment(owner);
    const { token, ...shown } = await createToken(owner, { tags: ["edge"], deploymentId: deployment });
    expect(token).toMatch(/^enr_/);
    expect(shown).toMatchObject({ maxUses: 1, uses: 0, tags: ["edge"], createdBy: `user:${owner.userId}` });
    const { device_id } = await enroll(token);
    expect(await world.db.query("select tags, deployment_id from devices where device_id = $1", [device_id])).toEqual([
      { tags: ["edge"], deployment_id: deployment },
    ]);
    expect(await world.db.query("select prepared_email from pairings where device_id = $1", [device_id])).toEqual([
      { prepared_email: `device+${device_id}@${owner.slug}.invalid` },
    ]);
    expect(JSON.stringify(await world.call.pairing.listTokens(as(owner), {}))).not.toContain(token);
    expect(JSON.stringify(await world.db.query("select * from enrollment_tokens"))).not.toContain(token);
  });

  test("a token is never used more often than allowed, however many devices use it at once", async () => {
    const owner = await world.newTenant();
    const { token, tokenId } = await createToken(owner, { maxUses: 3 });
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () =>
        enroll(token).then(
          () => "device",
          async (error: unknown) => (await failureOf(Promise.reject(error))).code,
        ),
      ),
    );
    expect(outcomes.toSorted()).toEqual([...Array.from({ length: 7 }, () => "ENROLLMENT_TOKEN_EXHAUSTED"), ...Array.from({ length: 3 }, () => "device")]);
    expect((await world.call.pairing.listTokens(as(owner), {})).items).toMatchObject([{ tokenId, uses: 3 }]);
  });

  test("a wrong pairing code costs the token no use", async () => {
    const owner = await world.newTenant();
    const { token } = await createToken(owner);
    expect(await failureOf(world.call.pairing.autoActivate(anyone(), { enrollment_token: token, pairing_code: "BCDF-GHJK" }))).toMatchObject({
      code: "PAIRING_CODE_NOT_FOUND",
    });
    expect(await enroll(token)).toMatchObject({ tenant_id: owner.tenantId });
  });

  test("a revoked or expired token enrolls nobody, and another tenant can neither revoke it nor learn that it exists", async () => {
    const [owner, other] = [await world.newTenant(), await world.newTenant()];
    const [one, two] = [await createToken(owner), await createToken(owner)];
    expect(await failureOf(world.call.pairing.revokeToken(as(other), { tokenId: one.tokenId }))).toMatchObject({
      code: "ENROLLMENT_TOKEN_NOT_FOUND",
      details: { tokenId: one.tokenId },
    });
    await world.call.pairing.revokeToken(as(owner), { tokenId: one.tokenId });
    await world.db.query("update enrollment_tokens set expires_at = now() - interval '1 second' where token_id = $1", [two.tokenId]);
    for (const { token } of [one, two]) expect(await failureOf(enroll(token, randomUUID()))).toMatchObject({ code: "ENROLLMENT_TOKEN_INVALID", status: 401 });
    expect(await failureOf(createToken(owner, { deploymentId: await defaultDeployment(other) }))).toMatchObject({
      code: "DEPLOYMENT_NOT_FOUND",
    });
  });

  test("an address may send three wrong tokens a minute, and its right token still works", async () => {
    const owner = await world.newTenant();
    const { token } = await createToken(owner, { maxUses: null });
    for (let attempt = 0; attempt < 3; attempt += 1)
      expect(await failureOf(enroll("enr_wrong", "203.0.113.9"))).toMatchObject({ code: "ENROLLMENT_TOKEN_INVALID" });
    expect(await failureOf(enroll("enr_wrong", "203.0.113.9"))).toMatchObject({ code: "RATE_LIMIT_EXCEEDED", status: 429 });
    expect(await enroll(token, "203.0.113.9")).toMatchObject({ tenant_id: owner.tenantId });
  });

  test("bootstrap returns the same token until it is revoked", async () => {
    const owner = await world.newTenant();
    const ensure = () => world.pairing.ensureEnrollmentToken(owner);
    const token = await ensure();
    expect(await ensure()).toBe(token);
    expect(await enroll(token)).toMatchObject({ tenant_id: owner.tenantId });
    const [{ tokenId } = { tokenId: "ent_none" as const }] = (await world.call.pairing.listTokens(as(owner), {})).items;
    await world.call.pairing.revokeToken(as(owner), { tokenId });
    expect(await ensure()).not.toBe(token);
  });
});

describe("installation progress", () => {
  const report = (pairingCode: string, currentStep: EnrollmentStep, stepStatus?: StepStatus, error?: string) =>
    world.call.pairing.updateProgress(anyone(), {
      pairingCode,
      currentStep,
      ...(stepStatus === undefined ? {} : { stepStatus }),
      ...(error === undefined ? {} : { error }),
    });

  test("progress is read by code before the activation and by device after it", async () => {
    const owner = await world.newTenant();
    const { request } = await prepared(owner);
    await report(request.pairing_code, "preflight_check", "completed");
    await report(request.pairing_code, "docker_install", "skipped");
    const { device_id: deviceId, agent_id: agentId } = await activate(request);
    const agent = inside(owner.tenantId, { kind: "agent", agentId, deviceId, deploymentId: "dep_1" });
    await world.call.pairing.updateDeviceProgress(agent, { deviceId, currentStep: "downloading" });
    expect(await world.call.pairing.deviceProgress(as(owner), { deviceId })).toEqual({
      currentStep: "downloading",
      steps: { preflight_check: "completed", docker_install: "skipped", downloading: "in_progress" },
    });
    await report(request.pairing_code, "failed", undefined, "disk full");
    expect(await world.call.pairing.progress(as(owner), { pairingCode: request.pairing_code })).toMatchObject({
      currentStep: "failed",
      error: "disk full",
      failedAt: expect.any(String),
      steps: { downloading: "failed" },
    });
    await report(request.pairing_code, "pending");
    for (const step of ["preflight_check", "docker_install", "downloading", "installing", "enrolling", "completed"] as const)
      await report(request.pairing_code, step);
    const done = await world.call.pairing.deviceProgress(as(owner), { deviceId });
    expect(done).toMatchObject({ currentStep: "completed", completedAt: expect.any(String) });
    expect(done).not.toHaveProperty("failedAt");
    expect((await world.events(deviceId)).map(({ type }) => type).filter((type) => type.startsWith("enrollment."))).toEqual([
      "enrollment.progressed",
      "enrollment.failed",
      ...Array.from({ length: 6 }, () => "enrollment.progressed"),
      "enrollment.completed",
    ]);
  });

  test("a report that skips steps is refused with the allowed steps, and a repeated report changes nothing", async () => {
    const { pairing_code } = await initiate();
    await report(pairing_code, "preflight_check");
    expect(await report(pairing_code, "preflight_check")).toEqual({ currentStep: "preflight_check", steps: { preflight_check: "in_progress" } });
    expect(await failureOf(report(pairing_code, "installing"))).toEqual({
      code: "INVALID_STATE_TRANSITION",
      status: 409,
      details: { from: "preflight_check", to: "installing", allowed: ["preflight_check", "docker_install", "failed"] },
    });
  });

  test("another tenant's installation looks like an unknown one", async () => {
    const [owner, other] = [await world.newTenant(), await world.newTenant()];
    const { request } = await prepared(owner);
    const { device_id: deviceId } = await activate(request);
    expect(await failureOf(world.call.pairing.deviceProgress(as(other), { deviceId }))).toMatchObject({ code: "DEVICE_NOT_FOUND", details: { deviceId } });
    expect(await failureOf(world.call.pairing.progress(as(other), { pairingCode: request.pairing_code }))).toMatchObject({ code: "PAIRING_CODE_NOT_FOUND" });
  });

  test("a device that pairs again starts its progress anew and stays the same device", async () => {
    const owner = await world.newTenant();
    const fingerprint = randomUUID();
    const first = await activate((await prepared(owner, fingerprint)).request);
    const { request } = await prepared(owner, fingerprint, true);
    await report(request.pairing_code, "preflight_check");
    const second = await activate(request);
    expect(second.device_id).toBe(first.device_id);
    expect(await world.call.pairing.deviceProgress(as(owner), { deviceId: first.device_id })).toMatchObject({ currentStep: "preflight_check" });
  });
});

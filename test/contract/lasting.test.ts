// A call that lasts ends within seconds of the loss of its right, with the code that the same call would get then: every operation that streams or
// waits, by every kind of loss. Seconds pass until a node looks again, and in them nothing is to do, so the losses happen beside each other.
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { insertApp } from "../features/apps/logs-kit.ts";
import { insertExport } from "../features/data-exports/samples.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { openAgent } from "../kit/gateway/agents.ts";
import { asAgent, asKey, type Caller, type Device, emailOf, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { newBackup } from "./samples/backups.ts";
import { newBulkOperation } from "./samples/bulk-operations.ts";
import { newImport } from "./samples/imports.ts";
import { newRollout } from "./samples/rollouts.ts";
import { CASES, type Case, type OperationId, type Stock } from "./samples.ts";

const TAG = "site:berlin";
/** Beside those that the contract declares: they wait for a device's answer. */
const WAIT_FOR_DEVICE: readonly OperationId[] = ["apps.logs", "deployments.logs"];
/** Within it, every look-up of a node knows of a loss. */
const LONGEST_MS = 15_000;
/** A call that is not refused by then is allowed. */
const REFUSED_MS = 1_000;
/** Each look calls every operation that is still allowed. */
const LOOK_MS = 1_500;
const lasts = ({ id, op }: Case): boolean => op.kind === "subscription" || op.maxWaitSeconds !== undefined || WAIT_FOR_DEVICE.includes(id);
const LASTING = CASES.filter(lasts);

let world: World;
const ends: (() => Promise<void>)[] = [];
beforeAll(async () => {
  world = await startWorld(
    // All losses happen beside each other: calls of 140 look up what they may still do, and none may wait so long for a session that the database counts as busy.
    {
      DATABASE_POOL: "32",
      LIVE_STREAMS_PER_CREDENTIAL: "100",
      RATE_LIMIT_STANDARD: "off",
      RATE_LIMIT_READS: "off",
      RATE_LIMIT_AGENT: "off",
      RATE_LIMIT_FAILED_AUTH: "off",
    },
    { settings: { appLogs: { tailBudgetMs: 14_000 } } },
  );
});
afterAll(async () => {
  await Promise.all(ends.map((end) => end()));
  await world.close();
});

interface Place {
  readonly tenant: TestTenant;
  readonly owner: Caller;
  readonly device: Device;
  readonly polled: Device;
  /** It never connects. */
  readonly spare: Device;
  readonly appId: string;
  readonly deploymentId: string;
  readonly backupId: string;
  readonly restoreId: string;
  readonly operationId: string;
  readonly exportId: string;
  readonly importId: string;
  readonly rolloutId: string;
}
/** A tenant with an app on a device whose agent is connected and never answers for logs. */
const openPlace = async (): Promise<Place> => {
  const tenant = await world.tenant();
  const [device, polled, spare] = [await tenant.device(), await tenant.device(), await tenant.device()];
  const owner = await tenant.user("owner");
  await world.sql.query("update devices set tags = array[$2] where tenant_id = $1", [tenant.tenantId, TAG]);
  const silent = { long: true, cancelable: true, run: () => new Promise<object>(() => undefined) };
  const { agent, stop } = openAgent(world.url, device, { handlers: { "app.logs": silent, "app.followLogs": silent, ping: silent } });
  agent.start();
  ends.push(stop);
  await eventually(() => expect(agent.state).toBe("ready"));
  const deploymentId = newId("dep");
  await world.sql.query(
    `insert into deployments (deployment_id, tenant_id, name, status, template, template_version, device_id, configuration, revision, current_revision)
     values ($1, $2, $1, 'active', 'key-value', '1.0.0', $3, '{}', 1, 1)`,
    [deploymentId, tenant.tenantId, device.deviceId],
  );
  const { backupId } = await newBackup({ world, tenant } as Stock, { deviceId: device.deviceId, status: "in_progress" });
  const restoreId = newId("rst");
  await world.sql.query(
    `insert into restores (restore_id, tenant_id, device_id, backup_id, target_app_id, restore_type, overwrite_existing, dry_run, created_by)
     values ($1, $2, $3, $4, $5, 'full', false, false, 'user:u')`,
    [restoreId, tenant.tenantId, device.deviceId, backupId, newId("app")],
  );
  const stock = { world, tenant, owner, device } as Stock; // as: what these samples take of it
  const [{ operationId }, rolloutId] = [await newBulkOperation(stock, ""), await newRollout(stock)];
  return {
    operationId,
    importId: await newImport({ world, tenant }),
    exportId: (await insertExport(world, tenant, "completed")).exportId,
    rolloutId,
    backupId,
    restoreId,
    tenant,
    owner,
    device,
    polled,
    spare,
    deploymentId,
    appId: await insertApp(world, tenant, device, { deploymentId }),
  };
};

/** As it waits, and as it answers at once. */
const requestOf = (
  { id }: Case,
  { spare, polled, appId, deploymentId, backupId, restoreId, operationId, exportId, importId, rolloutId }: Place,
  waits: boolean,
): { method: string; path: string; body?: object } => {
  const timeout = waits ? 60 : 0;
  const by: Partial<Record<OperationId, { method: string; path: string; body?: object }>> = {
    "devices.wait": { method: "GET", path: `/v1/devices/${spare.deviceId}/wait?status=online&timeout=${timeout}` },
    "apps.wait": { method: "GET", path: `/v1/apps/${appId}/wait?status=stopped&timeout=${timeout}` },
    "deployments.wait": { method: "GET", path: `/v1/deployments/${deploymentId}/wait?status=failed&timeout=${timeout}` },
    "backups.wait": { method: "GET", path: `/v1/backups/${backupId}/wait?status=failed&timeout=${timeout}` },
    "backups.waitRestore": { method: "GET", path: `/v1/restores/${restoreId}/wait?status=failed&timeout=${timeout}` },
    "bulkOperations.wait": { method: "GET", path: `/v1/bulk-operations/${operationId}/wait?status=failed&timeout=${timeout}` },
    "dataExports.wait": { method: "GET", path: `/v1/exports/${exportId}/wait?status=failed&timeout=${timeout}` },
    "imports.wait": { method: "GET", path: `/v1/imports/${importId}/wait?status=failed&timeout=${timeout}` },
    "rollouts.wait": { method: "GET", path: `/v1/rollouts/${rolloutId}/wait?status=failed&timeout=${timeout}` },
    "commands.queue": { method: "POST", path: `/v1/devices/${spare.deviceId}/commands`, body: { type: "ping", wait: waits ? 30 : 0 } },
    "commands.poll": { method: "GET", path: `/v1/devices/${polled.deviceId}/commands?wait=${waits ? 50 : 0}` },
    "apps.logs": { method: "GET", path: `/v1/apps/${appId}/logs` },
    "deployments.logs": { method: "GET", path: `/v1/deployments/${deploymentId}/logs` },
    "apps.followLogs": { method: "GET", path: `/v1/apps/${appId}/logs/stream` },
    "deployments.followLogs": { method: "GET", path: `/v1/deployments/${deploymentId}/logs/stream` },
    "live.watch": { method: "GET", path: "/trpc/live.watch?input=%7B%7D" },
  };
  const request = by[id];
  if (request === undefined) throw new Error(`say here how ${id} is called`);
  return request;
};

interface Opened {
  /** Resolves once it has begun, as far as the caller can know. */
  readonly begun: Promise<void>;
  /** The code with which it ended; null for an answer or a stream that ended by itself. */
  readonly code: Promise<string | null>;
  close(): void;
}
const open = (each: Case, place: Place, as: Caller, waits = true): Opened => {
  const { method, path, body } = requestOf(each, place, waits);
  const text = body === undefined ? "" : JSON.stringify(body);
  const stop = new AbortController();
  let begin: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const read = async (): Promise<string | null> => {
    const headers = {
      ...as.headers(text),
      ...(path.startsWith("/trpc") ? { accept: "text/event-stream" } : {}),
      ...(text === "" ? {} : { "content-type": "application/json" }),
    };
    const response = await fetch(`${world.url}${path}`, { method, headers, signal: stop.signal, ...(text === "" ? {} : { body: text }) });
    let all = "";
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      all += part;
      if (/stream\.position|"notice"|"success"/.test(all)) begin();
      if (!waits && /stream\.position|"notice"/.test(all)) return null;
    }
    return /"code":"([A-Z_]+)"/.exec(all.replaceAll('"code":-32', ""))?.[1] ?? null;
  };
  const code = waits ? read() : Promise.race([read(), setTimeout(REFUSED_MS, null)]).finally(() => stop.abort());
  code.catch(() => undefined);
  return { begun, code, close: () => stop.abort() };
};

interface Losing {
  readonly as: Caller;
  readonly lose: () => Promise<unknown>;
}
const done = ({ status, body }: { status: number; body: unknown }): void => {
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`);
};
const keyWith = async ({ tenant, owner }: Place, more: object) => {
  const { body, status } = await world.call(owner, "POST", "/v1/api-keys", { body: { name: newId("key"), role: "admin", ...more } });
  done({ status, body });
  return { as: asKey(body.data.apiKey, tenant.tenantId), keyId: body.data.keyId as string };
};
const member = async ({ tenant }: Place) => {
  const userId = newId("usr");
  const { token } = await world.app.mint({ userId, email: emailOf(userId), tenantId: tenant.tenantId, role: "admin", ttlSeconds: 3_600 });
  return { userId, as: { kind: "user", headers: () => ({ authorization: `Bearer ${token}` }) } as Caller };
};
const ofMember =
  (text: string) =>
  async (place: Place): Promise<Losing> => {
    const { userId, as } = await member(place);
    return { as, lose: () => world.sql.query(text, [place.tenant.tenantId, userId]) };
  };
const suspend = async ({ tenant }: Place) =>
  done(await world.call(await world.operator(), "POST", `/v1/admin/tenants/${tenant.tenantId}/suspend`, { body: { reason: "unpaid" } }));

const LOSSES: Readonly<Record<string, (place: Place) => Promise<Losing>>> = {
  "its device leaves the key's limit": async (place) => {
    const { as } = await keyWith(place, { selector: { deviceIds: [], tags: [TAG] } });
    return { as, lose: () => world.sql.query("update devices set tags = '{}' where tenant_id = $1", [place.tenant.tenantId]) };
  },
  "the key is revoked": async (place) => {
    const { as, keyId } = await keyWith(place, {});
    return { as, lose: async () => done(await world.call(place.owner, "DELETE", `/v1/api-keys/${keyId}`)) };
  },
  "the key's limit changes": async (place) => {
    const { as, keyId } = await keyWith(place, { selector: { deviceIds: [], tags: [TAG] } });
    return { as, lose: () => world.sql.query(`update api_keys set selector = '{"deviceIds":[],"tags":["site:paris"]}' where key_id = $1`, [keyId]) };
  },
  "the role changes": async (place) => {
    const { body, status } = await world.call(place.owner, "POST", "/v1/roles", { body: { name: "reader", permissions: ["audit:read"] } });
    done({ status, body });
    const { userId, as } = await member(place);
    const values = [place.tenant.tenantId, userId, body.data.roleId];
    return { as, lose: () => world.sql.query("update memberships set role = 'custom', role_id = $3 where tenant_id = $1 and user_id = $2", values) };
  },
  "the member is removed": ofMember("delete from memberships where tenant_id = $1 and user_id = $2"),
  "the member is limited to other devices": ofMember(
    `update memberships set selector = '{"deviceIds":[],"tags":["site:paris"]}' where tenant_id = $1 and user_id = $2`,
  ),
  "the tenant is suspended": async (place) => ({ as: (await keyWith(place, {})).as, lose: () => suspend(place) }),
  "the session ends": async (place) => {
    const { userId } = await member(place);
    const { as, sessionId } = await world.session(userId, place.tenant.tenantId);
    return {
      as: { ...as, headers: (body) => ({ ...as.headers(body), "x-svc-tenant-id": place.tenant.tenantId }) },
      lose: async () => done(await world.call(as, "DELETE", `/v1/account/sessions/${sessionId}`)),
    };
  },
  "the caller is blocked": async (place) => {
    const { as, keyId } = await keyWith(place, {});
    const block = async (entityType: string, entityValue: string) =>
      done(await world.call(place.owner, "POST", "/v1/security/blocked-entities", { body: { entityType, entityValue, reason: "stolen" } }));
    return { as, lose: () => Promise.all([block("key", keyId), block("device", place.polled.deviceId)]) };
  },
  "the record is deleted": async (place) => {
    const { as } = await keyWith(place, {});
    const remove = async (): Promise<void> => {
      for (const table of ["backups", "many_work", "bulk_operations", "rollouts", "data_exports", "imports"])
        await world.sql.query(`delete from ${table} where tenant_id = $1`, [place.tenant.tenantId]);
      await world.sql.query("update apps set status = 'removed', removed_at = now() where tenant_id = $1", [place.tenant.tenantId]);
      await world.sql.query("update deployments set status = 'deleted', deleted_at = now() where deployment_id = $1", [place.deploymentId]);
      // By the API its commands would end first, and so would the call that waits for one.
      await world.sql.query("update devices set deleted_at = now() where device_id = $1", [place.spare.deviceId]);
      done(await world.call(place.owner, "DELETE", `/v1/devices/${place.polled.deviceId}`));
    };
    return { as, lose: remove };
  },
};

/** Operations that a new caller may call after the loss: reads while a tenant is suspended, agents, streams without a record. */
const KEPT: Readonly<Record<string, readonly OperationId[]>> = {
  "its device leaves the key's limit": ["commands.poll", "live.watch"],
  "the key is revoked": ["commands.poll"],
  "the key's limit changes": ["commands.poll", "live.watch"],
  "the role changes": ["commands.poll"],
  "the member is removed": ["commands.poll"],
  "the member is limited to other devices": ["commands.poll", "live.watch"],
  "the tenant is suspended": [
    "apps.logs",
    "apps.wait",
    "backups.wait",
    "backups.waitRestore",
    "bulkOperations.wait",
    "commands.poll",
    "dataExports.wait",
    "deployments.logs",
    "deployments.wait",
    "devices.wait",
    "imports.wait",
    "rollouts.wait",
  ],
  "the session ends": ["commands.poll"],
  "the caller is blocked": [],
  "the record is deleted": ["live.watch"],
};

/** Refusals of a busy machine and of many calls say nothing of what the caller may do. */
const OF_THE_MACHINE: ReadonlySet<string> = new Set(["TOO_MANY_REQUESTS", "SERVICE_UNAVAILABLE", "DATABASE_BUSY"]);

describe("a call that lasts ends with the code that a new one gets", () => {
  test.concurrent.each(Object.keys(LOSSES))("when %s", { timeout: 60_000 }, async (name) => {
    const place = await openPlace();
    const losing = await LOSSES[name]?.(place);
    if (losing === undefined) throw new Error(`no loss ${name}`);
    const callerOf = ({ op }: Case): Caller => (op.auth.includes("agent") ? asAgent(place.polled.identity) : losing.as);
    const opened = LASTING.map((each) => ({ each, call: open(each, place, callerOf(each)) }));
    await Promise.all(opened.filter(({ each }) => each.op.kind === "subscription").map(({ call }) => call.begun));
    // Calls that came later are answered, so those above have begun.
    const later = (as: Caller) => world.call(as, "GET", as.kind === "agent" ? "/v1/agent/me" : "/v1/devices");
    for (let turn = 0; turn < 2; turn += 1) await Promise.all(LASTING.map((each) => later(callerOf(each))));
    await losing.lose();
    const ended = async ({ each, call }: (typeof opened)[number]): Promise<OperationId | null> => {
      const again = async (): Promise<string> => {
        const code = await open(each, place, callerOf(each), false).code;
        if (code === null || OF_THE_MACHINE.has(code)) throw new Error(`${each.id} is still allowed`);
        return code;
      };
      const code = await eventually(again, { boundMs: LONGEST_MS, stepMs: LOOK_MS }).catch(() => null);
      const seen = code === null ? null : await call.code;
      if (seen === null || !OF_THE_MACHINE.has(seen)) expect([each.id, seen]).toEqual([each.id, code]);
      call.close();
      return code === null ? each.id : null;
    };
    const kept = (await Promise.all(opened.map(ended))).filter((id) => id !== null);
    expect(kept.sort()).toEqual(KEPT[name]);
  });
});

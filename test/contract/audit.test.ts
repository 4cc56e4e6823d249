// Each operation that changes something writes exactly one audit record, which names its caller, itself and its resource, or stands on the list below.
// All of them run without caches: a value may be too old in the middle of any call, and a transaction that then reads it again must do so by itself.
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CachedOptions } from "../../server/core/structures/cached.ts";
import { NOT_WATCHED } from "../../server/platform/database/audited-tables.ts";
import { type Caller, startWorld, type World } from "../kit/gateway/world.ts";
import { CASES, type Case, callerFor, NEEDS_PROVIDER, type OperationId, openStock, type Stock, sample } from "./samples.ts";

vi.mock("../../server/core/structures/cached.ts", () => ({
  createCached: <V>({ load }: CachedOptions<V>) => ({ get: load, peek: () => null, forget: () => undefined, forgetAll: () => undefined }),
}));

/** Mutations without a record. */
const UNRECORDED: Partial<Record<OperationId, string>> = {
  "pairing.initiate": "an unknown machine asks for a code; nothing is anybody's before a person claims it, which is recorded",
  "pairing.updateProgress": "an installer reports its steps; events tell of them",
  "pairing.updateDeviceProgress": "an installer reports its steps; events tell of them",
  "devices.heartbeat": "telemetry of a device, twice a minute",
  "agent.reportInventory": "telemetry of a device",
  "volumes.report": "telemetry of a device; events tell what follows from it",
  "agent.sendLogs": "lines of a log, which the gateway passes on and does not keep",
  "agent.reportState": "telemetry of a device; events tell what follows from it",
  "batch.run": "each item has the record of a call of its own",
  "commands.queue": "each command has its own history, which names who queued it",
  "commands.queueMany": "each command has its own history, which names who queued it",
  "commands.ack": "each command has its own history, which names who acknowledged it",
  "traces.ingest": "what programs report of themselves",
  "billing.providerEvents": "the payment provider tells of its own records; events tell what follows from them",
  "general.streamTicket": "opens one stream within a minute and changes nothing",
  "sessions.token": "gives an access token to a session, whose beginning is recorded, and changes nothing",
};
/** Queries with a record. */
const RECORDED_QUERIES: readonly OperationId[] = ["devices.secrets", "sessions.login", "apps.secrets", "backupDestinations.recovery"];

let world: World;
let stock: Stock;
beforeAll(async () => {
  const free = {
    RATE_LIMIT_ANONYMOUS: "off",
    RATE_LIMIT_PAIRING: "off",
    RATE_LIMIT_INVITES: "off",
    RATE_LIMIT_AGENT: "off",
    RATE_LIMIT_HEARTBEAT: "off",
    TENANTS_PER_USER: "100",
  };
  world = await startWorld(free, { inProcess: true, settings: { many: { lanes: 0 } } });
  stock = await openStock(world);
});
afterAll(() => world.close());

interface Row {
  readonly action: string;
  readonly tenant_id: string;
  readonly actor_type: string;
  readonly actor_id: string;
  readonly resource_type: string;
  readonly resource_id: string | null;
  readonly request_id: string;
  readonly changes: readonly { readonly type: string }[];
}
const recordsAfter = async (run: () => Promise<void>): Promise<readonly Row[]> => {
  const { rows: before } = await world.sql.query("select audit_id from audit_logs");
  await run();
  return (await world.sql.query("select * from audit_logs where audit_id <> all($1) order by sequence", [before.map(({ audit_id }) => audit_id)])).rows;
};

/** The answer's request id. */
const call = async ({ id, op }: Case, as: Caller, input: unknown): Promise<string> => {
  const answer =
    op.kind === "query"
      ? await world.call(as, "GET", `/trpc/${id}?input=${encodeURIComponent(JSON.stringify(input))}`)
      : await world.call(as, "POST", `/trpc/${id}`, { body: input });
  expect([id, answer.status, answer.body.error ?? null]).toEqual([id, 200, null]);
  return answer.headers.get("x-request-id") ?? "";
};

const ACTOR: Readonly<Record<Caller["kind"], string>> = { user: "user", apiKey: "apiKey", agent: "agent", none: "anonymous" };
const actorTypeOf = ({ id, op }: Case, as: Caller): string => {
  if (op.permission === "platform") return "operator";
  if (id === "pairing.activate" || id === "sessions.login" || id === "sessions.signIn") return "user";
  if (id === "pairing.collect") return "agent";
  return id === "pairing.autoActivate" ? "enrollmentToken" : ACTOR[as.kind];
};

const recorded = CASES.filter(
  ({ id, op }) => !NEEDS_PROVIDER.has(id) && ((op.kind === "mutation" && UNRECORDED[id] === undefined) || RECORDED_QUERIES.includes(id)),
);
describe("each change", () => {
  test.each(recorded.map((each) => [each.id, each] as const))("%s writes exactly one record, with its caller and its resource", async (id, each) => {
    const input = await sample(each, stock);
    const as = callerFor(each, stock);
    let requestId = "";
    const rows = await recordsAfter(async () => {
      requestId = await call(each, as, input);
    });
    expect(rows.map(({ action }) => action)).toEqual([id]);
    const [row] = rows;
    expect([row?.actor_type, row?.request_id]).toEqual([actorTypeOf(each, as), requestId]);
    const own = stock.tenant.tenantId;
    if (each.op.tenancy === "tenant") expect(row?.tenant_id).toBe(own);
    const [, field] = [...(each.op.rest[0] ?? "").matchAll(/\{(\w+)\}/g)].at(-1) ?? [];
    if (field !== undefined) expect(row?.resource_id).toBe(input[field]);
    if (each.op.location !== undefined) expect(row?.resource_id).toMatch(/^[a-z]{2,3}_/);
  });
});

test("the operations on the list write no record, and there is no other", async () => {
  const rows = await recordsAfter(async () => {
    // A text in pieces has no tRPC form.
    const spoken = CASES.filter(({ id, op }) => op.plain?.pieces !== true && !NEEDS_PROVIDER.has(id));
    for (const each of spoken.filter(({ id, op }) => UNRECORDED[id] !== undefined || (op.kind === "query" && !RECORDED_QUERIES.includes(id)))) {
      const input = await sample(each, stock);
      await call(each, callerFor(each, stock), input);
    }
  });
  // Samples make what they speak of.
  const makers = [
    "backups.create",
    "backupDestinations.test",
    "pairing.createToken",
    "invites.create",
    "apiKeys.create",
    "roles.create",
    "fleets.create",
    "security.createRule",
    "security.block",
    "alerts.createRule",
    "alerts.createSilence",
    "alerts.createChannel",
    "webhooks.create",
    "views.create",
    "domains.create",
    "meshRoutes.create",
    "tunnels.create",
    "bulkOperations.create",
    "dataExports.download",
    "rollouts.createPolicy",
    "devices.provision",
    "pairing.prepareActivation",
    "pairing.approve",
    "cli.token",
  ];
  expect(rows.filter(({ action }) => !makers.includes(action)).map(({ action }) => action)).toEqual([]);
});

test("a keyed operation cannot leave its record out", () => {
  expect(Object.keys(UNRECORDED).filter((id) => CASES.find((each) => each.id === id)?.op.idempotency === "key")).toEqual([]);
});

test("a new tenant's log begins with its creation", async () => {
  const rows = await recordsAfter(async () => {
    await world.call(stock.owner, "POST", "/v1/tenants", { body: { name: "New", slug: "brand-new-one", userId: stock.tenant.ownerId } });
  });
  expect(rows.map(({ action, resource_id, tenant_id }) => [action, resource_id === tenant_id])).toEqual([["tenants.create", true]]);
  expect(rows[0]?.changes.map(({ type }) => type).sort()).toEqual(["deployments", "memberships", "subscriptions", "tenants"]);
});

test("PostgreSQL watches every table but those that say why not", async () => {
  const { rows } = await world.sql.query(
    `select relname as name from pg_class c where relkind = 'r' and relnamespace = 'public'::regnamespace
        and not exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgname = 'audit') order by 1`,
  );
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(NOT_WATCHED).sort());
});

// A tenant with many devices and an engine that tests step by hand, at a time of their own.
import { newId } from "../../../server/core/ids.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
type Data = any;

export const TARGET = "9.9.9";
export const AGENT = { subject: { kind: "agent" }, targetVersion: TARGET };

/** Steps see the database's time plus this. */
let aheadMs = 0;
export const advance = (ms: number): void => {
  aheadMs += ms;
};
export const setTime = (at: string): void => {
  aheadMs = Date.parse(at) - Date.now();
};

export const startRolloutWorld = (): Promise<World> => {
  aheadMs = 0;
  return startWorld({}, { inProcess: true, settings: { withoutJobs: true, many: { lanes: 1, nowOf: (now) => new Date(now.getTime() + aheadMs) } } });
};

export interface Fleet {
  readonly world: World;
  readonly tenant: TestTenant;
  readonly owner: Caller;
  readonly fleetId: string;
  readonly deviceIds: readonly string[];
}

/** Devices that are online and run 1.0.0, in a fleet of their own. */
export const openFleet = async (world: World, size: number, given?: { readonly tenant: TestTenant; readonly fleetId?: string }): Promise<Fleet> => {
  const tenant = given?.tenant ?? (await world.tenant());
  const owner = await tenant.user("owner");
  const fleetId = given?.fleetId ?? (await world.call(owner, "POST", "/v1/fleets", { body: { name: newId("f") } })).body.data.fleetId;
  const deviceIds = Array.from({ length: size }, () => newId("dev"));
  await world.sql.query(
    `insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, status, agent_version, fleet_ids, secret, updated_at)
     select d, $1, (select deployment_id from deployments where tenant_id = $1 and is_default), replace(d, 'dev_', 'agt_'), d, 'online', '1.0.0', array[$3], '\\x00', now()
       from unnest($2::text[]) as d`,
    [tenant.tenantId, deviceIds, fleetId],
  );
  return { world, tenant, owner, fleetId, deviceIds };
};

export const call = async ({ world, owner }: Pick<Fleet, "world" | "owner">, method: string, path: string, body?: object): Promise<Data> => {
  const answer = await world.call(owner, method, `/v1${path}`, body === undefined ? {} : { body });
  if (answer.status >= 300) throw Object.assign(new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`), { answer });
  return answer.body?.data;
};

export const create = async (fleet: Fleet, settings: object, more: object = {}): Promise<string> => {
  const { rolloutId } = await call(fleet, "POST", "/rollouts", { fleetId: fleet.fleetId, settings: { ...AGENT, ...settings }, start: true, ...more });
  return rolloutId;
};
export const read = (fleet: Fleet, rolloutId: string): Promise<Data> => call(fleet, "GET", `/rollouts/${rolloutId}`);

/** Takes every step that is due now, and once more what the steps put off. */
export const step = async ({ world }: Pick<Fleet, "world">, rounds = 1): Promise<void> => {
  for (let round = 0; round < rounds; round += 1) {
    await world.sql.query("update many_work set step_at = now() - interval '1 second'");
    await runJob(world, "many.step");
  }
};

export const membersOf = async (
  { world }: Pick<Fleet, "world">,
  rolloutId: string,
): Promise<readonly { device_id: string; status: string; code: string | null; command_id: string | null; position: number }[]> =>
  (
    await world.sql.query("select device_id, status, code, command_id, position from rollout_devices where rollout_id = $1 order by position, device_id", [
      rolloutId,
    ])
  ).rows;

const END = `with ended as (update commands c set status = $2, finished_at = now(), sent_at = $4, failure_code = $3, attempt = 1
     where c.command_id = any($1::text[]) and c.finished_at is null returning c.device_id, c.seq)
   delete from command_queue q using ended e where q.device_id = e.device_id and q.seq = e.seq`;
/** Ends commands as their agents would have. Without `sent` no device ever got them. */
export const endCommands = async (
  { world }: Pick<Fleet, "world">,
  commandIds: readonly string[],
  { status = "failed", code = "BROKEN" as string | null, sent = true } = {},
): Promise<void> => {
  await world.sql.query(END, [commandIds, status, code, sent ? new Date() : null]);
};

/** Devices that are ordered do what they are told: those of `failing` fail, all others run the target. Returns how many ended. */
export const obey = async (fleet: Fleet, rolloutId: string, failing: (deviceId: string) => boolean): Promise<number> => {
  const ordered = (await membersOf(fleet, rolloutId)).filter(({ status }) => status === "ordered");
  const bad = ordered.filter(({ device_id }) => failing(device_id));
  const good = ordered.filter(({ device_id }) => !failing(device_id)).map(({ device_id }) => device_id);
  await endCommands(
    fleet,
    bad.map(({ command_id }) => command_id ?? ""),
  );
  await fleet.world.sql.query("update devices set agent_version = $2 where device_id = any($1::text[])", [good, TARGET]);
  return ordered.length;
};

/** Steps and obeys until nothing is ordered any more. */
export const runToEnd = async (fleet: Fleet, rolloutId: string, failing: (deviceId: string) => boolean = () => false): Promise<Data> => {
  for (let quiet = 0, rounds = 0; quiet < 2 && rounds < 400; rounds += 1) {
    await step(fleet);
    quiet = (await obey(fleet, rolloutId, failing)) === 0 ? quiet + 1 : 0;
  }
  return read(fleet, rolloutId);
};

export const orderedEver = async ({ world }: Pick<Fleet, "world">, rolloutId: string): Promise<number> =>
  (await world.sql.query("select count(*)::int as count from commands where idempotency_key like 'system:rlt:' || $1 || ':%'", [rolloutId])).rows[0].count;

// A tenant with devices, apps and what was measured of them on past days.
import { expect } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { addDays, dayOf } from "../../../server/features/costs/days.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import type { Caller, TestTenant, World } from "../../kit/gateway/world.ts";

export const TODAY = dayOf(new Date());
export const YESTERDAY = addDays(TODAY, -1);

export interface MachineSpec {
  readonly tags?: readonly string[];
  readonly memoryGB?: number;
  readonly cores?: number;
  readonly diskGB?: number;
}

/** Adds up all days that are over, as the jobs would by themselves after midnight. */
export const addUp = async (world: World): Promise<void> => {
  await world.sql.query(
    `insert into metric_progress (step_seconds, at, after_device) values (86400, $1::date::timestamp at time zone 'utc', null)
     on conflict (step_seconds) do update set at = excluded.at, after_device = null`,
    [YESTERDAY],
  );
  // The job also runs by itself, and may be at it.
  await eventually(async () => {
    await runJob(world, "costs.ledger");
    const { rows } = await world.sql.query("select tenant_id from cost_ledgers where through < $1::date", [YESTERDAY]);
    expect(rows).toEqual([]);
  });
};

/** Lets the last day be added up again. */
export const reopen = (world: World, tenantId: string) =>
  world.sql.query("update cost_ledgers set through = $2::date, lease_until = now() where tenant_id = $1", [tenantId, addDays(YESTERDAY, -1)]);

export const openCosts = async (world: World, known?: TestTenant) => {
  const tenant = known ?? (await world.tenant());
  const owner = await tenant.user("owner");
  const { tenantId } = tenant;
  const call = (method: string, path: string, body?: unknown, as: Caller = owner) => world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
  const get = async (path: string, as: Caller = owner) => {
    const { status, body } = await call("GET", path, undefined, as);
    if (status !== 200) throw new Error(`${path} answered ${status}: ${JSON.stringify(body)}`);
    return body.data;
  };
  const machine = async ({ tags = [], memoryGB = 8, cores = 4, diskGB = 100 }: MachineSpec = {}): Promise<string> => {
    const hardware = { cpuCores: cores, memoryBytes: memoryGB * 1e9, diskBytes: diskGB * 1e9 };
    const deviceId = newId("dev");
    await insertRow(world.sql, "devices", {
      tenant_id: tenantId,
      device_id: deviceId,
      status: "online",
      tags,
      hardware: JSON.stringify(hardware),
      created_at: new Date(`${addDays(TODAY, -200)}T00:00:00Z`),
    });
    return deviceId;
  };
  return {
    tenant,
    tenantId,
    owner,
    call,
    get,
    machine,
    /** Reported so long on each of these days, with so much load. */
    measured: (deviceId: string, days: readonly string[], minutes = 1_440, cpu: number | null = 10) =>
      world.sql.query(
        `insert into device_metrics (tenant_id, device_id, step_seconds, at, samples, cpu_avg, cpu_max)
         select $1, $2, 86400, d::timestamp at time zone 'utc', $4, $5, $5 from unnest($3::date[]) d on conflict (tenant_id, device_id, step_seconds, at)
         do update set samples = excluded.samples, cpu_avg = excluded.cpu_avg`,
        [tenantId, deviceId, days, minutes, cpu],
      ),
    app: async (deviceId: string, more: Readonly<Record<string, unknown>> = {}): Promise<string> => {
      const row = await insertRow(world.sql, "apps", {
        tenant_id: tenantId,
        device_id: deviceId,
        app_type: "key-value",
        desired_state: "running",
        deployment_id: null,
        removed_at: null,
        created_at: new Date(`${addDays(TODAY, -100)}T00:00:00Z`),
        ...more,
      });
      return String(row["app_id"]);
    },
    rates: async (body: object): Promise<{ readonly version: number; readonly validFrom: string }> => {
      const { status, body: answer } = await call("PUT", "/costs/rates", { currency: "EUR", ...body });
      if (status !== 200) throw new Error(`the rates were refused: ${JSON.stringify(answer)}`);
      return answer.data;
    },
  };
};
export type Costs = Awaited<ReturnType<typeof openCosts>>;

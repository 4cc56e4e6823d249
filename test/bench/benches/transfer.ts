// Many calls, all data, all costs: a batch beside single calls, exports and what others notice of them, imports, and a year of the cost ledger.
import { gzipSync } from "node:zlib";
import { z } from "zod";
import { documentOf } from "../../features/imports/document.ts";
import { quantile, summarise } from "../arithmetic.ts";
import { type BenchGateway, type BenchTenant, createTenant, provision, startBenchGateway, waitUntil } from "../gateway.ts";
import type { MetricId } from "../metrics.ts";
import { type Parts, type ProcessorUse, sampleParts, useBetween } from "../processor-time.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";
import { auditRow, call, createsFor, fill, pause } from "./lists.ts";

export interface TransferPlan {
  /** Of 20 calls each. */
  readonly batches: number;
  readonly rounds: number;
  readonly auditRecords: number;
  readonly fleets: number;
  readonly devices: number;
  readonly days: number;
  readonly createsPerSecond: number;
  readonly windowMs: number;
}

interface Subject {
  readonly stage: BenchStage;
  readonly plan: TransferPlan;
  readonly gateway: BenchGateway;
  readonly tenant: BenchTenant;
  readonly parts: Parts;
  /** Microseconds of each second. */
  readonly idle: number;
}

const IDLE_MS = 10_000;
const BATCH = 20;
const WITHIN_MS = 300_000;
const LOOK_MS = 200;
const Answer = z.object({ data: z.record(z.string(), z.unknown()) });

const ask = async ({ gateway, tenant }: Pick<Subject, "gateway" | "tenant">, path: string, body?: unknown): Promise<Record<string, unknown>> => {
  const answer = await call(gateway, tenant, `/v1${path}`, body);
  const text = await answer.text();
  if (answer.status > 299) throw new InvalidRun(`${path} answers ${answer.status} ${text.slice(0, 300)}`);
  return Answer.parse(JSON.parse(text)).data;
};

const oursIn = ({ totalUs, partUs }: ProcessorUse): number => totalUs - (partUs["bench"] ?? 0);
/** What the gateway and PostgreSQL take in a second in which nobody calls, in microseconds. */
const idleOf = async (parts: Parts): Promise<number> => {
  const before = sampleParts(parts);
  await pause(IDLE_MS);
  return oursIn(useBetween(before, sampleParts(parts), IDLE_MS / 1_000));
};
/** What `work` takes of the gateway and of PostgreSQL beyond that, in microseconds for each unit. */
const costOf = async ({ parts, idle }: Pick<Subject, "parts" | "idle">, units: number, work: () => Promise<unknown>): Promise<number> => {
  const before = sampleParts(parts);
  await work();
  const after = sampleParts(parts);
  return oursIn(useBetween(before, after, units)) - (idle * (after.atMs - before.atMs)) / 1_000 / units;
};

const finding = (id: MetricId, values: readonly number[], note: string): Finding => {
  const { value, min, max } = summarise(values);
  return { id, value, span: [min, max], rounds: values, note };
};

const batches = async (subject: Subject): Promise<readonly Finding[]> => {
  const { plan, gateway, tenant } = subject;
  const devices = await provision(gateway, tenant, BATCH);
  const paths = devices.map(({ deviceId }) => `/devices/${deviceId}`);
  const requests = paths.map((path, at) => ({ id: String(at), method: "GET", path }));
  const singles = async (): Promise<void> => {
    for (let n = 0; n < plan.batches; n += 1) for (const path of paths) await ask(subject, path);
  };
  const together = async (): Promise<void> => {
    for (let n = 0; n < plan.batches; n += 1) await ask(subject, "/batch", { requests });
  };
  const ratios: number[] = [];
  const units = plan.batches * BATCH;
  await singles();
  await together();
  let note = "";
  for (let round = 0; round < plan.rounds; round += 1) {
    const [single, batch] = [await costOf(subject, units, singles), await costOf(subject, units, together)];
    ratios.push(batch / single);
    note = `${batch.toFixed(0)} us a read in a batch, ${single.toFixed(0)} us alone`;
  }
  return [finding("batch-reads", ratios, note)];
};

const makeExport = async (subject: Pick<Subject, "gateway" | "tenant">): Promise<Record<string, unknown>> => {
  const { exportId } = await ask(subject, "/exports", { scopes: ["audit"] });
  return waitUntil(
    async () => {
      const found = await ask(subject, `/exports/${exportId}`);
      if (found["status"] === "pending" || found["status"] === "running") return pause(LOOK_MS).then(() => undefined);
      if (found["status"] !== "completed") throw new InvalidRun(`the export ended as ${found["status"]} ${found["statusReason"]}`);
      return found;
    },
    { withinMs: WITHIN_MS },
  );
};

const exports = async (subject: Subject): Promise<readonly Finding[]> => {
  const { stage, plan, gateway, tenant } = subject;
  await fill(stage, tenant.tenantId, "audit_logs", { row: auditRow, rows: plan.auditRecords });
  const rates: number[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    const us = await costOf(subject, 1, () => makeExport(subject));
    rates.push(plan.auditRecords / (us / 1_000_000));
  }
  const other = await createTenant(stage, { unlimited: true });
  const [{ deviceId = "" } = {}] = await provision(gateway, other, 1);
  const creates = (windowMs: number) => createsFor(gateway, other, { deviceId, plan: { ...plan, windowMs, commands: 0, readers: 0 } });
  await creates(2_000);
  const alone = await creates(plan.windowMs);
  let isOn = true;
  let made = 0;
  const exporting = (async () => {
    for (; isOn; made += 1) await makeExport(subject);
  })();
  const beside = await creates(plan.windowMs);
  isOn = false;
  await exporting;
  const note = `p99 ${alone.p99.toFixed(1)} ms alone, ${beside.p99.toFixed(1)} ms beside ${made} exports of ${plan.auditRecords} records; ${beside.failed} failed`;
  return [
    finding("export-rows", rates, `${plan.auditRecords} audit records`),
    { id: "export-beside", value: beside.p99 / alone.p99, rounds: [alone, beside], note },
  ];
};

const fleetOf = (name: string) => ({ name, selector: { tags: [name] } });
/** The file of an export from elsewhere, with a fleet on each line. */
const fileOf = (names: readonly string[]): Buffer => gzipSync(documentOf({ fleet: names.map(fleetOf) }));

const importFile = async (subject: Subject, file: Buffer): Promise<void> => {
  const { gateway, tenant } = subject;
  const { importId } = await ask(subject, "/imports", {});
  const headers = { authorization: `Bearer ${tenant.apiKey}`, "content-type": "application/gzip" };
  const sent = await fetch(`${gateway.url}/v1/imports/${importId}/upload`, { method: "POST", headers, body: new Uint8Array(file) });
  if (sent.status !== 200) throw new InvalidRun(`the upload answers ${sent.status} ${await sent.text()}`);
  const until = (busy: readonly string[]) =>
    waitUntil(
      async () => {
        const found = await ask(subject, `/imports/${importId}`);
        return busy.includes(String(found["status"])) ? pause(LOOK_MS).then(() => undefined) : found;
      },
      { withinMs: WITHIN_MS },
    );
  const plan = await until(["validating"]);
  await ask(subject, `/imports/${importId}/apply`, { planHash: plan["planHash"] });
  const done = await until(["applying"]);
  if (done["status"] !== "completed") throw new InvalidRun(`the import ended as ${done["status"]} ${JSON.stringify(done["applied"])}`);
};

const STATEMENTS = "select coalesce(sum(calls), 0)::int as calls from pg_stat_statements";
const SINGLES = 500;

const imports = async (subject: Subject): Promise<readonly Finding[]> => {
  const { stage, plan } = subject;
  if (stage.counts) await stage.admin("create extension if not exists pg_stat_statements");
  const namesOf = (word: string, count: number) => Array.from({ length: count }, (_, at) => `${word}-${String(at).padStart(6, "0")}`);
  const singles = async (): Promise<void> => {
    for (const name of namesOf("single", SINGLES)) await ask(subject, "/fleets", fleetOf(name));
  };
  const single = await costOf(subject, SINGLES, singles);
  const calls = async (): Promise<number> => (stage.counts ? ((await stage.admin<{ calls: number }>(STATEMENTS))[0]?.calls ?? 0) : 0);
  const before = await calls();
  const each = await costOf(subject, plan.fleets, () => importFile(subject, fileOf(namesOf("imported", plan.fleets))));
  const statements = ((await calls()) - before) / plan.fleets;
  const note = `${plan.fleets} fleets, ${each.toFixed(0)} us each; ${single.toFixed(0)} us by a call`;
  return [
    { id: "import-statements", value: stage.counts ? statements : null, note: stage.counts ? note : "run it with --only import-statements" },
    { id: "import-cpu", value: each / single, note },
  ];
};

const MONEY = ["device", "fixed", "energy", "cpu", "memory", "storage"];
const some = (columns: readonly string[]): string => columns.map(() => "1000 + n").join(", ");
const DAYS = `insert into cost_days (tenant_id, day, device_id, rates_version, minutes, ${MONEY.join(", ")}, shared, idle, total)
  select $1, current_date - d, device_id, 1, 1440, ${some(MONEY)}, 0, 100, 6000 + 6 * n
  from (select device_id, row_number() over () as n from devices where tenant_id = $1) v, generate_series(1, $2::int) d`;
const APP_DAYS = `insert into cost_app_days (tenant_id, day, device_id, app_id, memory_weight, disk_weight, ${MONEY.join(", ")}, total)
  select tenant_id, day, device_id, 'app_' || device_id, 1, 1, ${MONEY.join(", ")}, total from cost_days where tenant_id = $1`;
const RATES = { currency: "EUR", device: { fixedMonthly: 900 } };
const AGGREGATES = ["device", "app", "deployment", "fleet", "tag:site:"];
const VISITS = 3;

const costs = async (subject: Subject): Promise<readonly Finding[]> => {
  const { stage, plan, gateway, tenant } = subject;
  await provision(gateway, tenant, plan.devices);
  process.stderr.write(`  writing ${plan.days} days of ${plan.devices} devices\n`);
  await stage.query(DAYS, [tenant.tenantId, plan.days]);
  await stage.query(APP_DAYS, [tenant.tenantId]);
  const put = await fetch(`${gateway.url}/v1/costs/rates`, {
    method: "PUT",
    headers: { authorization: `Bearer ${tenant.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(RATES),
  });
  if (put.status !== 200) throw new InvalidRun(`the rates answer ${put.status} ${await put.text()}`);
  await stage.admin("vacuum analyze");
  const timeOf = async (aggregate: string, window: string): Promise<number> => {
    const visits: number[] = [];
    for (let visit = 0; visit < VISITS; visit += 1) {
      const started = performance.now();
      await ask(subject, `/costs/allocation?aggregate=${encodeURIComponent(aggregate)}&window=${encodeURIComponent(window)}`);
      visits.push(performance.now() - started);
    }
    return quantile(visits, 0.5);
  };
  const day = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
  const ratios: { readonly aggregate: string; readonly month: number; readonly year: number }[] = [];
  for (const aggregate of AGGREGATES) {
    const [month, year] = [await timeOf(aggregate, "30d"), await timeOf(aggregate, `${day(plan.days)},${day(1)}`)];
    process.stderr.write(`  ${aggregate}: ${month.toFixed(0)} ms for 30 days, ${year.toFixed(0)} ms for a year\n`);
    ratios.push({ aggregate, month, year });
  }
  const worst = ratios.toSorted((a, b) => b.year / b.month - a.year / a.month)[0] ?? { aggregate: "", month: 1, year: 0 };
  return [
    {
      id: "costs-year",
      value: worst.year / worst.month,
      rounds: ratios,
      note: `${worst.aggregate}: ${worst.year.toFixed(0)} ms for a year, ${worst.month.toFixed(0)} ms for 30 days`,
    },
  ];
};

/** A bench with a gateway and a tenant of its own. */
const alone =
  (bench: (subject: Subject) => Promise<readonly Finding[]>) =>
  (stage: BenchStage, plan: TransferPlan): Promise<readonly Finding[]> =>
    stage.scope(async (scope) => {
      const gateway = await startBenchGateway(scope);
      const parts: Parts = { gateway: [gateway.pid], postgres: [scope.postgresPid] };
      return bench({ stage: scope, plan, gateway, parts, idle: await idleOf(parts), tenant: await createTenant(scope, { unlimited: true }) });
    });

export const batchBench = alone(batches);
export const exportBench = alone(exports);
export const importBench = alone(imports);
export const costBench = alone(costs);

// Webhook deliveries, from the committed event to the stored result, beside a bare loop that posts the same body to the same receiver.
import { readFileSync } from "node:fs";
import { z } from "zod";
import { summarise } from "../arithmetic.ts";
import { type BenchGateway, type BenchTenant, createTenant, startBenchGateway, waitUntil } from "../gateway.ts";
import { LOAD_CPU, pin, SERVER_CPU } from "../machine.ts";
import { type Peer, startReference } from "../peers.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

export interface WebhookPlan {
  readonly rounds: number;
  readonly tenants: number;
  readonly deliveries: number;
}

/** One webhook each, so that every event is one delivery. */
const TYPES = [
  "device.online",
  "device.offline",
  "device.created",
  "device.changed",
  "device.deleted",
  "command.failed",
  "command.expired",
  "command.canceled",
];
/** As many calls at once as a tenant has places. */
const PER_TENANT = 20;
const WITHIN_MS = 60_000;
/** Far above the load: the pace that a tenant sets for its receiver must not be what is measured. */
const PACE = 100_000;
const TICKS_MS = 10;

/** Time of the processor that the process has used. */
const cpuMsOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICKS_MS;
};

const subscribe = async ({ url }: BenchGateway, receiver: Peer, { tenantId, apiKey }: BenchTenant): Promise<void> => {
  for (const type of TYPES) {
    const answer = await fetch(`${url}/v1/webhooks`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": apiKey, "x-svc-tenant-id": tenantId },
      body: JSON.stringify({ url: `http://127.0.0.2:${receiver.port}/${type}`, events: [type] }),
    });
    if (answer.status !== 201) throw new Error(`no webhook: ${answer.status} ${await answer.text()}`);
  }
};

const WRITE = `insert into outbox_events (event_id, tenant_id, type, subject_id, data)
  select 'evt_' || gen_random_uuid(), ($1::text[])[1 + n % cardinality($1::text[])], ($2::text[])[1 + n / cardinality($1::text[]) % cardinality($2::text[])],
         'subject-' || n, jsonb_build_object('deviceId', 'subject-' || n, 'status', 'online', 'reason', 'heartbeat', 'at', now())
    from generate_series(0, $3 - 1) as n`;

/** From the relay's first transaction: it comes within a second, and for an event of our own within milliseconds. */
const TAKEN = `select sum(attempt_count) as tried, count(*) filter (where status = 'succeeded') as succeeded,
         extract(epoch from max(completed_at) - min(created_at))::float8 * 1000 as ms from webhook_deliveries`;

interface Cost {
  readonly perSecond: number;
  readonly cpuMsEach: number;
}

const deliver = async (stage: BenchStage, gateway: BenchGateway, tenants: readonly BenchTenant[], deliveries: number): Promise<Cost> => {
  const stored = async (): Promise<number> =>
    Number((await stage.query<{ stored: string }>("select sum(succeeded) as stored from webhook_hours"))[0]?.stored ?? 0);
  await stage.query("truncate webhook_deliveries, webhook_hours");
  const usedBefore = cpuMsOf(gateway.pid);
  await stage.query(WRITE, [tenants.map(({ tenantId }) => tenantId), TYPES, deliveries]);
  await waitUntil(async () => ((await stored()) >= deliveries ? true : undefined), { withinMs: WITHIN_MS });
  const used = cpuMsOf(gateway.pid) - usedBefore;
  const [row] = await stage.query<{ tried: string; succeeded: string; ms: number }>(TAKEN);
  if (Number(row?.tried) !== deliveries || Number(row?.succeeded) !== deliveries)
    throw new InvalidRun(`${row?.tried} attempts and ${row?.succeeded} successes for ${deliveries} deliveries`);
  return { perSecond: (deliveries * 1_000) / (row?.ms ?? 0), cpuMsEach: used / deliveries };
};

const Looped = z.object({ ms: z.number(), cpuMs: z.number() });
const post = async (loop: Peer, request: { url: string; body: string; count: number; connections: number }): Promise<Cost> => {
  const answer = await fetch(`http://127.0.0.1:${loop.port}/`, { method: "POST", body: JSON.stringify(request) });
  const { ms, cpuMs } = Looped.parse(await answer.json());
  return { perSecond: (request.count * 1_000) / ms, cpuMsEach: cpuMs / request.count };
};

const findingOf = (id: "webhooks" | "webhooks-cpu" | "webhooks-rate", values: readonly number[]): Finding => {
  const { value, min, max, rounds } = summarise(values);
  return { id, value, span: [min, max], rounds };
};

export const webhooks = (stage: BenchStage, { rounds, tenants: count, deliveries }: WebhookPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const receiver = await startReference(scope, "receiver");
    pin(receiver.pid, LOAD_CPU);
    const loop = await startReference(scope, "undici-loop");
    pin(loop.pid, SERVER_CPU);
    const gateway = await startBenchGateway(scope, { env: { WEBHOOK_ALLOW_CIDRS: "127.0.0.2/32", WEBHOOK_ALLOW_HTTP: "true" } });
    const tenants: BenchTenant[] = [];
    for (let n = 0; n < count; n += 1) tenants.push(await createTenant(scope, { unlimited: true }));
    for (const tenant of tenants) await subscribe(gateway, receiver, tenant);
    await scope.query("update webhooks set max_per_second = $1, version = version + 1", [PACE]);
    const [ours, bare]: [Cost[], Cost[]] = [[], []];
    for (let round = 0; round <= rounds; round += 1) {
      const delivered = await deliver(scope, gateway, tenants, deliveries);
      const [sample] = await scope.query<{ body: string }>("select body from webhook_deliveries limit 1");
      const url = `http://127.0.0.2:${receiver.port}/bare`;
      const posted = await post(loop, { url, body: sample?.body ?? "", count: deliveries, connections: count * PER_TENANT });
      const line = ({ perSecond, cpuMsEach }: Cost): string => `${Math.round(perSecond)}/s, ${(cpuMsEach * 1_000).toFixed(0)} us of CPU each`;
      process.stderr.write(`  ${String(round).padStart(2)}  deliveries ${line(delivered)}; bare loop ${line(posted)}\n`);
      if (round === 0) continue;
      ours.push(delivered);
      bare.push(posted);
    }
    const over = (pick: (cost: Cost) => number) => ours.map((cost, at) => pick(cost) / pick(bare[at] ?? cost));
    return [
      findingOf(
        "webhooks",
        over(({ perSecond }) => perSecond),
      ),
      findingOf(
        "webhooks-cpu",
        over(({ cpuMsEach }) => 1 / cpuMsEach),
      ),
      findingOf(
        "webhooks-rate",
        ours.map(({ perSecond }) => perSecond),
      ),
    ];
  });

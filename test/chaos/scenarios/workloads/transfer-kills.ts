// Exports and imports while the nodes and PostgreSQL are killed: an import carries each line of its file out once, and a file that is called complete is whole.
import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { z } from "zod";
import { createRandom, pause, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { documentOf } from "../../../features/imports/document.ts";
import { type Calls, createCalls, headersOf } from "../../rig/calls.ts";
import { type Rig, urlOf, withRig } from "../../rig/rig.ts";
import { ask } from "../../rig/sql.ts";
import { killNode, killPostgres } from "../../rig/troubles.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";

const NODES = 2;
/** Of one import: several batches of its plan, and several steps. */
const LINES = 1_200;
/** Of each export: several chunks. */
const RECORDS = 20_000;
const CALLS_MS = 120_000;
const REST_MS = 240_000;
const LOOK_MS = 100;
/** Between two troubles. */
const LEAST_MS = 300;
const MORE_MS = 2_500;
const POSTGRES_EVERY = 4;

interface Stage {
  readonly rig: Rig;
  readonly calls: Calls;
  readonly random: () => number;
  readonly counts: { imports: number; lines: number; exports: number; complete: number };
  readonly found: { hanging: number; "lines-failed": number; "made-wrongly": number; "told-wrongly": number; "broken-files": number };
}

const Imported = z.object({
  importId: z.string(),
  status: z.string(),
  planHash: z.string().nullable(),
  applied: z.object({ succeeded: z.int(), failed: z.int() }),
});
const Exported = z.object({ exportId: z.string(), status: z.string(), sha256: z.string().nullable() });

const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** The file of an export from elsewhere, with a fleet on each line. */
const fileOf = (names: readonly string[]): Buffer => gzipSync(documentOf({ fleet: names.map((name) => ({ name, selector: { tags: [name] } })) }));

/** Asks the nodes in turn until one answers. */
const bytesOf = async ({ rig }: Stage, path: string, init: RequestInit): Promise<Buffer> => {
  const untilMs = time.elapsedMs() + CALLS_MS;
  for (let turn = 0; ; turn += 1) {
    const node = rig.nodes[turn % NODES];
    try {
      const headers = { ...headersOf(rig.credentials), "content-type": "application/gzip" };
      const answer = await fetch(`${urlOf(node as { readonly port: number })}/v1${path}`, { ...init, headers, signal: AbortSignal.timeout(10_000) });
      const bytes = Buffer.from(await answer.arrayBuffer());
      if (answer.status < 300) return bytes;
      if (answer.status < 500 && answer.status !== 429) throw new RangeError(`${path} answers ${answer.status} ${bytes.toString().slice(0, 300)}`);
    } catch (error) {
      if (error instanceof RangeError || time.elapsedMs() > untilMs) throw error;
    }
    await pause(time, LOOK_MS);
  }
};

const FLEETS = "select count(*)::int as made, count(distinct name)::int as names from fleets where tenant_id = $1 and name like $2";
const TOLD = "select count(*)::int as told from outbox_events where tenant_id = $1 and subject_id = $2 and type = 'import.completed'";

const importOnce = async (stage: Stage, round: number): Promise<void> => {
  const { rig, calls, counts, found } = stage;
  const { tenantId } = rig.credentials;
  const names = Array.from({ length: LINES }, (_none, at) => `import-${round}-${at}`);
  const { importId } = await calls.data(Imported, "POST", "/imports", {});
  await bytesOf(stage, `/imports/${importId}/upload`, { method: "POST", body: new Uint8Array(fileOf(names)) });
  const path = `/imports/${importId}`;
  const planned = await calls.settled(path, ["ready", "failed"], REST_MS);
  counts.imports += 1;
  if (planned !== "ready") {
    // Its node has died three times.
    if (planned !== "failed") found.hanging += 1;
    await calls.ask("DELETE", path);
    return;
  }
  const { planHash } = await calls.data(Imported, "GET", path);
  await calls.ask("POST", `${path}/apply`, { planHash });
  const status = await calls.settled(path, ["completed", "completed_with_errors", "failed"], REST_MS);
  const { applied } = await calls.data(Imported, "GET", path);
  counts.lines += LINES;
  if (status !== "completed") found.hanging += status === "applying" ? 1 : 0;
  found["lines-failed"] += applied.failed;
  const [{ made, names: distinct } = { made: 0, names: 0 }] = await ask<{ made: number; names: number }>(rig.postgres, FLEETS, [tenantId, `import-${round}-%`]);
  if (made !== LINES || distinct !== LINES || applied.succeeded !== LINES) found["made-wrongly"] += 1;
  const [{ told } = { told: 0 }] = await ask<{ told: number }>(rig.postgres, TOLD, [tenantId, importId]);
  if (told !== 1) found["told-wrongly"] += 1;
};

const exportOnce = async (stage: Stage): Promise<void> => {
  const { calls, counts, found } = stage;
  const { exportId } = await calls.data(Exported, "POST", "/exports", { scopes: ["audit"] });
  const status = await calls.settled(`/exports/${exportId}`, ["completed", "failed"], REST_MS);
  counts.exports += 1;
  if (status === "failed") return;
  if (status !== "completed") {
    found.hanging += 1;
    await calls.ask("DELETE", `/exports/${exportId}`);
    return;
  }
  counts.complete += 1;
  const row = await calls.data(Exported, "GET", `/exports/${exportId}`);
  const bytes = await bytesOf(stage, `/exports/${exportId}/download`, { method: "GET" });
  const text = gunzipSync(bytes).toString();
  const lines = text.trimEnd().split("\n");
  const end = JSON.parse(lines.at(-1) ?? "{}");
  const isWhole = sha256(bytes) === row.sha256 && end.sha256 === sha256(`${lines.slice(0, -1).join("\n")}\n`) && end.counts["audit-log"] >= RECORDS;
  if (!isWhole) found["broken-files"] += 1;
};

const AUDIT = `insert into audit_logs (tenant_id, audit_id, sequence, at, actor_type, actor_id, changes, omitted, action, resource_type, resource_id, outcome, hash, previous_hash)
  select $1, 'aud_' || lpad(n::text, 26, '0'), 1000000 + n, now() - interval '1 day', 'user', md5(n::text), '[]', 0, 'devices.update', 'device', md5((n * 7)::text) || md5((n * 13)::text),
    'success', decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex') from generate_series(1, $2::int) n`;
const UNLIMITED = `update tenants set limit_overrides = '{"fleets": null, "exportsPerDay": null}' where tenant_id = $1`;
/** What the first step has done, nobody remembers, so the next one does it again. */
const FORGET = `create function forget() returns trigger language plpgsql as $$ begin
    update import_lines set status = 'pending' where import_id = new.import_id and n < new.next_line;
    new.next_line := 1; return new; end $$;
  create trigger forget before update on imports for each row when (old.next_line = 1 and new.next_line > 1 and old.failed + old.succeeded = 0) execute function forget()`;

const makeTrouble = async ({ rig, random }: Stage, state: { over: boolean }): Promise<number> => {
  let faults = 0;
  for (; !state.over; faults += 1) {
    await pause(time, LEAST_MS + random() * MORE_MS);
    if (faults % POSTGRES_EVERY === POSTGRES_EVERY - 1) await killPostgres(rig);
    else await killNode(rig, faults);
  }
  return faults;
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: NODES, seed, redis: true }, async (rig) => {
    await ask(rig.postgres, UNLIMITED, [rig.credentials.tenantId]);
    await ask(rig.postgres, AUDIT, [rig.credentials.tenantId, RECORDS]);
    const rounds = control ? 1 : scale.agents > 50 ? 10 : 2;
    const stage: Stage = {
      rig,
      calls: createCalls(rig.http, headersOf(rig.credentials), { lookMs: LOOK_MS }),
      random: createRandom(seed),
      counts: { imports: 0, lines: 0, exports: 0, complete: 0 },
      found: { hanging: 0, "lines-failed": 0, "made-wrongly": 0, "told-wrongly": 0, "broken-files": 0 },
    };
    const state = { over: false };
    if (control) await ask(rig.postgres, FORGET);
    const trouble = control ? Promise.resolve(1) : makeTrouble(stage, state);
    const work = async (one: (round: number) => Promise<void>): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) await one(round);
    };
    try {
      await Promise.all([work((round) => importOnce(stage, round)), work(() => exportOnce(stage))]);
    } finally {
      state.over = true;
    }
    const faults = await trouble;
    const { imports, lines, exports, complete } = stage.counts;
    return {
      n: lines + complete,
      faults,
      violations: stage.found,
      latencyMs: { p50: null, p99: null },
      notes: [`${imports} imports with ${lines} lines that were carried out; ${exports} exports, of which ${complete} were complete and read back`],
    };
  });

export const transferKillScenarios: readonly Scenario[] = [
  {
    name: "transfer-kills",
    promise: "D6",
    claim:
      "across kill -9 of nodes and PostgreSQL an import carries each line of its file out once and tells its end once, and an export that is called complete is whole",
    needsRedis: true,
    control: { how: "what a step has done is forgotten, so the next one does it again", red: "made-wrongly" },
    run,
  },
];

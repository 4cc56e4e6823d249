// `npm run bench:growth`: how lists, counts and retention fare over millions of ended commands. Real servers, rows written by SQL, calls by REST.
import { parseArgs } from "node:util";
import { z } from "zod";
import type { PairedDevice } from "../../../agent-sim/agent/index.ts";
import type { SqlTx } from "../../../server/core/events.ts";
import type { Statement } from "../../../server/core/statements.ts";
import { deleteEnded, RETENTION_START } from "../../../server/features/commands/store/retention.ts";
import { type Rig, withRig } from "../../chaos/rig/rig.ts";
import { openSql, type SqlConnection } from "../../chaos/rig/sql.ts";
import { median } from "../arithmetic.ts";

const HELP = `npm run bench:growth -- [--rows N] [--rounds N] [--json]

  --rows N     ended commands of one tenant, spread over 28 days (default 3000000; 30000000 takes about 15 GB and half an hour)
  --rounds N   calls of each kind (default 9)
  --json       prints the result as JSON on stdout
`;
const DEVICES = 1_000;
const DAYS = 28;
/** Half of the rows are older. */
const KEEP_DAYS = 14;
const BATCHES = 100;
const BATCH = 500;
const CHUNK = 500_000;
const RARE_EVERY = 1_000_000;
const SETTINGS = { fsync: "off", shared_buffers: "1GB", max_wal_size: "8GB", maintenance_work_mem: "512MB", track_io_timing: "on" };

const Options = z.object({
  rows: z.coerce.number().int().min(1_000).max(100_000_000).default(3_000_000),
  rounds: z.coerce.number().int().min(1).max(99).default(9),
  json: z.boolean().default(false),
  help: z.boolean().default(false),
});

const say = (text: string): void => void process.stderr.write(`${text}\n`);

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** The time of a ULID, as its ten first digits. */
const DIGITS = Array.from({ length: 10 }, (_, place) => `substr('${ALPHABET}', ((t.ms >> ${45 - 5 * place}) & 31)::int + 1, 1)`).join(" || ");
const WRITE = `insert into commands (command_id, tenant_id, device_id, seq, lane, type, payload, issued_at, available_at, exec_timeout_s, created_by, status, finished_at,
    attempt, channel, node_id, sent_at, acked_at, ack_status, ack_at, output, output_truncated, late, history)
  select 'cmd_' || ${DIGITS} || lpad(n::text, 16, '0'), $1, ($2::text[])[n % ${DEVICES} + 1], 1000 + n / ${DEVICES}, 'host', 'ping', '{"request": 1}', at, at, 60, 'key_bench',
    case when n % ${RARE_EVERY} = 0 then 'canceled' else 'succeeded' end, at + interval '1 second',
    1, 'websocket', 'node-1', at, at, 'success', at, '{"pong": true}', false, false,
    '[["sent","2026-01-01T00:00:00.000Z"],["acknowledged","2026-01-01T00:00:00.000Z"],["succeeded","2026-01-01T00:00:00.000Z"]]'
    from generate_series($3::bigint, $4::bigint) as n,
    lateral (select (extract(epoch from now()) * 1000)::bigint - ($5 - n) * ${DAYS * 86_400_000}::bigint / $5 as ms) t,
    lateral (select to_timestamp(t.ms / 1000.0) as at) s`;

const fill = async (sql: SqlConnection, rig: Rig, members: readonly PairedDevice[], rows: number): Promise<void> => {
  const values = [rig.credentials.tenantId, members.map(({ deviceId }) => deviceId)];
  await sql.query("set synchronous_commit = off");
  for (let from = 1; from <= rows; from += CHUNK) {
    const until = Math.min(rows, from + CHUNK - 1);
    await sql.query(WRITE, [...values, from, until, rows]);
    say(`${until} of ${rows} rows`);
  }
  await sql.query("vacuum analyze commands");
};

interface Measured {
  readonly what: string;
  readonly firstMs: number;
  readonly medianMs: number;
  readonly mostMs: number;
}

const timed = async (what: string, rounds: number, call: (round: number) => Promise<unknown>): Promise<Measured> => {
  const took: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startMs = performance.now();
    await call(round);
    took.push(performance.now() - startMs);
  }
  const [firstMs = 0] = took;
  return { what, firstMs, medianMs: median(took), mostMs: Math.max(...took) };
};

interface Page {
  readonly data: readonly unknown[];
  readonly meta?: { readonly pagination?: { readonly nextCursor?: string | null } };
}

const measureCalls = async ({ http, credentials }: Rig, device: PairedDevice, rounds: number): Promise<readonly Measured[]> => {
  const headers = { "x-api-key": credentials.apiKey, "x-svc-tenant-id": credentials.tenantId };
  const get = async (path: string): Promise<Page> => {
    const { status, body } = await http.call({ method: "GET", path: `/v1/${path}`, headers });
    if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
    return body as Page;
  };
  /** Follows the cursors, so each call reads a page that none has read. */
  const following = (path: string) => {
    let cursor: string | null | undefined;
    return async (): Promise<void> => {
      const page = await get(`${path}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
      cursor = page.meta?.pagination?.nextCursor;
    };
  };
  return [
    await timed("all commands, first page", rounds, () => get("commands?pageSize=50")),
    await timed("all commands, following pages", rounds, following("commands?pageSize=50")),
    await timed("all commands, from the oldest", rounds, following("commands?pageSize=50&order=oldest")),
    await timed("all commands, status=canceled (1 of 1,000,000)", rounds, following("commands?pageSize=50&status=canceled")),
    await timed("all commands, a type that none has", rounds, following("commands?pageSize=50&type=none")),
    await timed("a device's commands, first page", rounds, () => get(`devices/${device.deviceId}/commands?pageSize=50`)),
    await timed("a device's commands, status=canceled", rounds, following(`devices/${device.deviceId}/commands?pageSize=50&status=canceled`)),
    await timed("summary", rounds, () => get("commands/summary")),
  ];
};

/** By the end of the commands and without a place, as up to 0.3.0: each batch finds what the ones before have left in the pages. */
const DELETE_BY_END = `with gone as (
   delete from commands c using (
     select tenant_id, command_id from commands where finished_at < now() - $1 * interval '1 day' limit $2) old
    where c.tenant_id = old.tenant_id and c.command_id = old.command_id returning 1) select count(*) from gone`;

const measureRetention = async (sql: SqlConnection, rows: number): Promise<readonly Measured[]> => {
  const batches = Math.min(BATCHES, Math.floor(rows / 4 / BATCH));
  const before = new Date(Date.now() - KEEP_DAYS * 86_400_000);
  const tx: SqlTx = {
    query: async <Row>(asked: Statement<Row> | string, values?: readonly unknown[]) => [...(await sql.query(String(asked), values))] as Row[],
  };
  let place = RETENTION_START;
  const byId = async (): Promise<void> => {
    const { next, deleted } = await deleteEnded(tx, { place, before, limit: BATCH });
    if (next === null) throw new Error("there was nothing to delete");
    place = next;
    if (deleted === 0) await byId();
  };
  return [
    await timed(`deleting ${BATCH} commands by their end, ${batches} times`, batches, () => sql.query(DELETE_BY_END, [KEEP_DAYS, BATCH])),
    await timed(`deleting ${BATCH} commands by their ids, ${batches} times`, batches, byId),
  ];
};

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: { rows: { type: "string" }, rounds: { type: "string" }, json: { type: "boolean" }, help: { type: "boolean" } },
  });
  const { rows, rounds, json, help } = Options.parse(values);
  if (help) {
    process.stdout.write(HELP);
    return;
  }
  const measured = await withRig({ nodes: 1, seed: 1, postgresSettings: SETTINGS }, async (rig) => {
    const sql = await openSql(rig.postgres);
    const members = await rig.provision(DEVICES);
    const [first] = members;
    if (first === undefined) throw new Error("no device was made");
    await fill(sql, rig, members, rows);
    const calls = await measureCalls(rig, first, rounds);
    const deletions = await measureRetention(sql, rows);
    await sql.close();
    return [...calls, ...deletions];
  });
  if (json) process.stdout.write(`${JSON.stringify({ rows, measured })}\n`);
  else
    for (const { what, firstMs, medianMs, mostMs } of measured)
      process.stdout.write(`${what.padEnd(50)} first ${firstMs.toFixed(0)} ms, median ${medianMs.toFixed(0)} ms, most ${mostMs.toFixed(0)} ms\n`);
};

await main();

// Reads PostgreSQL after a run: everything acknowledged must be there, once, and within the promised lag.
import { readFileSync } from "node:fs";
import type { PairedDevice } from "../../agent-sim/agent/index.ts";
import { waitUntil } from "./gateway.ts";
import { InvalidRun } from "./rounds.ts";
import type { BenchStage } from "./stage.ts";

/** Presence is written up to a second later; a busy machine gets more time. */
const LAG_MS = 10_000;

interface Beat {
  readonly deviceId: string;
  readonly cpu: number;
  readonly memory: number;
}

/** Reads the loader's record: connection, answered heartbeats, the random value of the last one. */
const lastBeats = (members: readonly PairedDevice[], file: string): readonly Beat[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .flatMap((line) => {
      const [number = 0, beats = 0, value = 0] = line.split(" ").map(Number);
      const member = members[number];
      return member === undefined || beats === 0
        ? []
        : [{ deviceId: member.deviceId, cpu: (value % 1_000) / 10, memory: (Math.floor(value / 1_000) % 1_000) / 10 }];
    });

/** Checks that each device's row shows its last acknowledged heartbeat. Throws InvalidRun. */
export const checkRows = async (stage: BenchStage, members: readonly PairedDevice[], file: string): Promise<void> => {
  const beats = lastBeats(members, file);
  const behind = async (): Promise<number> => {
    const [row] = await stage.query<{ behind: string }>(
      `select count(*) filter (where p.device_id is null or (p.metrics->>'cpu')::float8 is distinct from v.cpu or (p.metrics->>'memory')::float8 is distinct from v.memory) as behind
       from unnest($1::text[], $2::float8[], $3::float8[]) as v(id, cpu, memory) left join device_presence p on p.device_id = v.id`,
      [beats.map(({ deviceId }) => deviceId), beats.map(({ cpu }) => cpu), beats.map(({ memory }) => memory)],
    );
    return Number(row?.behind ?? -1);
  };
  let left = beats.length;
  await waitUntil(
    async () => {
      left = await behind();
      return left === 0 ? true : undefined;
    },
    { withinMs: LAG_MS },
  ).catch(() => {
    throw new InvalidRun(`PostgreSQL does not show the last acknowledged heartbeat of ${left} of ${beats.length} agents`);
  });
};

/** Open commands are rows of their own in newer schemas; in older ones `commands` shows them by status. */
const openCommands = async (stage: BenchStage, tenantId: string): Promise<number> => {
  const [table] = await stage.query<{ exists: boolean }>("select to_regclass('command_queue') is not null as exists");
  if (table?.exists !== true) return 0;
  const [row] = await stage.query<{ open: string }>("select count(*) as open from command_queue where tenant_id = $1", [tenantId]);
  return Number(row?.open);
};

/** Checks that every command of the run succeeded, none is open and no other exists. Throws InvalidRun. */
export const checkCommands = async (stage: BenchStage, tenantId: string, expected: number): Promise<void> => {
  const rows = await stage.query<{ status: string; count: string }>("select status, count(*) from commands_now where tenant_id = $1 group by status", [
    tenantId,
  ]);
  const found = new Map(rows.map(({ status, count }) => [status, Number(count)]));
  const open = await openCommands(stage, tenantId);
  if (open > 0 || found.size > 1 || (found.get("succeeded") ?? 0) !== expected)
    throw new InvalidRun(`of ${expected} commands PostgreSQL shows ${JSON.stringify(Object.fromEntries(found))} and ${open} in its queue`);
};

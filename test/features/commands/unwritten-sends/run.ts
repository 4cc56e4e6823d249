// Runs programs of many devices at the same time on one database whose clock the test sets, checks the rows after each step, and lets everything end.

import { isOpen } from "../../../../protocol/index.ts";
import type { Clock } from "../../../../server/core/clock.ts";
import { openMemoryBus } from "../../../../server/platform/cluster/bus-memory.ts";
import type { Db } from "../../../../server/platform/database/db.ts";
import { createTestDatabase, withClient } from "../../../kit/stores/database.ts";
import { NO_SESSION, openTestDb, runJob } from "../kit.ts";
import { type Sabotage, startNode } from "./node.ts";
import { createPlayer, type Player } from "./player.ts";
import type { Moment, Program } from "./programs.ts";
import { firstBreach, type Row, readAll } from "./rows.ts";

const START = Date.parse("2026-03-01T00:00:00.000Z");
/** The write-behind takes no longer. */
const WRITTEN_WITHIN_MS = 200;

export interface Finding {
  readonly device: number;
  readonly step: number;
  readonly message: string;
}
export interface Stage {
  run(moments: readonly Moment[], programs: readonly Program[]): Promise<Finding | null>;
  close(): Promise<void>;
}

const openClockedDb = async (): Promise<Db> => {
  const url = await createTestDatabase();
  await withClient(url, async (client) => {
    await client.query("create schema clock");
    await client.query("do $$ begin execute format('alter database %I set search_path = clock, pg_catalog, public', current_database()); end $$");
  });
  return openTestDb(url);
};

const byDevice = (rows: readonly Row[]): ReadonlyMap<string, readonly Row[]> => {
  const found = new Map<string, Row[]>();
  for (const row of rows) found.set(row.device_id, [...(found.get(row.device_id) ?? []), row]);
  return found;
};

export const openStage = async (sabotage: Sabotage = {}): Promise<Stage> => {
  const db = await openClockedDb();
  const time = { now: START, unwrittenMs: 0 };
  const clock: Clock = { now: () => new Date(time.now), elapsed: () => time.now };
  const setClock = (): Promise<unknown> =>
    db.query(
      `create or replace function clock.now() returns timestamptz language sql stable as $$ select '${new Date(time.now).toISOString()}'::timestamptz $$`,
    );
  const reaper = await startNode(db, { nodeId: "node-reaper", bus: openMemoryBus(), clock, sabotage, session: NO_SESSION });
  let players: readonly Player[] = [];

  const advance = async (ms: number): Promise<void> => {
    time.unwrittenMs += ms;
    if (time.unwrittenMs > WRITTEN_WITHIN_MS) {
      await Promise.all(players.map(({ write }) => write()));
      time.unwrittenMs = ms > WRITTEN_WITHIN_MS ? 0 : ms;
    }
    time.now += ms;
    await setClock();
  };
  const reap = async (): Promise<string | null> => {
    await runJob(reaper.feature, "commands.reaper");
    const { pastDeadline } = await reaper.feature.commandGauges();
    return pastDeadline === 0 ? null : `${pastDeadline} commands are past their deadlines`;
  };
  const inspect = async (step: number, handedBefore: readonly number[]): Promise<Finding | null> => {
    const rows = byDevice(await readAll(db));
    for (const [device, player] of players.entries()) {
      const message = firstBreach(player, rows.get(player.device.deviceId) ?? [], handedBefore[device] ?? 0);
      if (message !== null) return { device, step, message };
    }
    return null;
  };

  /** The bus works, each agent connects again, takes everything and answers. */
  const settleOnce = async (player: Player, rows: readonly Row[]): Promise<void> => {
    await player.act({ kind: "bus", is: "up" }, null);
    await player.act({ kind: "hello", at: 0 }, null);
    for (let round = 0; round < 4; round += 1) {
      await player.act({ kind: "claim", maxInFlight: 100, lost: false }, null);
      for (const commandId of player.held()) await player.ack(0, commandId, "succeeded");
    }
    for (const { command_id, status } of rows) if (status === "canceling") await player.ack(0, command_id, "canceled");
  };
  const finish = async (): Promise<Finding | null> => {
    for (let round = 0; round < 3; round += 1) {
      const rows = byDevice(await readAll(db));
      await Promise.all(players.map((player) => settleOnce(player, rows.get(player.device.deviceId) ?? [])));
      const wrong = await inspect(
        -1,
        players.map(({ handings }) => handings.length),
      );
      if (wrong !== null) return wrong;
      await advance(round === 0 ? 400_000 : 90_000_000);
      const overdue = await reap();
      if (overdue !== null) return { device: 0, step: -1, message: overdue };
    }
    const left = (await readAll(db)).find(({ status }) => isOpen(status));
    const device = players.findIndex((player) => player.device.deviceId === left?.device_id);
    return left === undefined
      ? inspect(
          -1,
          players.map(({ handings }) => handings.length),
        )
      : { device, step: -1, message: `${left.command_id} stays ${left.status}` };
  };

  const play = async (moments: readonly Moment[], programs: readonly Program[]): Promise<Finding | null> => {
    for (const [step, moment] of moments.entries()) {
      await advance(moment.advanceMs);
      const handed = players.map(({ handings }) => handings.length);
      await Promise.all(
        players.map((player, index) => {
          const act = programs[index]?.acts[step];
          return act === undefined ? null : player.act(act.op, act.beside);
        }),
      );
      const overdue = moment.reaps ? await reap() : null;
      if (overdue !== null) return { device: 0, step, message: overdue };
      const wrong = await inspect(step, handed);
      if (wrong !== null) return wrong;
    }
    return finish();
  };

  return {
    run: async (moments, programs) => {
      await db.query("truncate commands, command_queue, device_presence, devices, outbox_events cascade");
      time.now = START;
      time.unwrittenMs = 0;
      await setClock();
      players = await Promise.all(programs.map(({ lists }) => createPlayer(db, { clock, sabotage, lists })));
      try {
        return await play(moments, programs);
      } finally {
        await Promise.all(players.map(({ close }) => close()));
      }
    },
    close: () => db.close(),
  };
};

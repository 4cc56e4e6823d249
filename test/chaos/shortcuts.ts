// Doors that answer 2xx before the command is safe: what a gateway must never do, played by the rig for controls, so that a fault has something to lose.
// Without the fault each of them loses nothing.
import { randomUUID } from "node:crypto";
import { pause, systemTime as time } from "../../agent-sim/agent/index.ts";
import type { Rig } from "./rig.ts";

export interface Shortcut {
  /** The caller has its 2xx already; `ask` queues the command for real, later. */
  promise(ask: () => Promise<unknown>): void;
  /** Resolves when nothing is on its way any more. */
  rest(): Promise<void>;
}
export type MakeShortcut = (rig: Rig) => Shortcut;

/** How long a command lies where it is not safe. */
const HELD_MS = 600;

const eachOnItsWay = (carry: (ask: () => Promise<unknown>) => Promise<void>): Shortcut => {
  const ways = new Set<Promise<void>>();
  return {
    promise: (ask) => {
      // What cannot be queued in the end is lost, which is the point.
      const way = carry(ask)
        .catch(() => undefined)
        .finally(() => ways.delete(way));
      ways.add(way);
    },
    rest: async () => void (await Promise.all(ways)),
  };
};

/** Written behind: for a moment the command is in the memory of one node alone, and dies with it. */
export const fromMemory: MakeShortcut = ({ nodes }) => {
  let turn = 0;
  return eachOnItsWay(async (ask) => {
    turn += 1;
    const node = nodes[turn % nodes.length];
    const life = node?.lives;
    await pause(time, HELD_MS);
    if (node?.alive && node.lives === life) await ask();
  });
};

/** Written behind: for a moment the command is in Redis alone. */
export const fromRedis: MakeShortcut = ({ redis }) =>
  eachOnItsWay(async (ask) => {
    const key = `promised:${randomUUID()}`;
    const kept = await redis?.ask("SET", key, "1").catch(() => null);
    if (!kept) return void (await ask());
    await pause(time, HELD_MS);
    if ((await redis?.ask("EXISTS", key)) === ":1") await ask();
  });

const ROOM = 10;
/** Written behind, one after another, with room for a few: while the database cannot be reached, the oldest have to go. */
export const fromSmallBuffer: MakeShortcut = () => {
  const waiting: (() => Promise<unknown>)[] = [];
  let writing: Promise<void> | null = null;
  const write = async (): Promise<void> => {
    for (let ask = waiting.shift(); ask; ask = waiting.shift()) await ask().catch(() => undefined);
    writing = null;
  };
  return {
    promise: (ask) => {
      waiting.push(ask);
      if (waiting.length > ROOM) waiting.shift();
      writing ??= write();
    },
    rest: async () => void (await writing),
  };
};

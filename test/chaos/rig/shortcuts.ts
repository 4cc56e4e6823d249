// Shortcuts answer 2xx before the command is safe, as a gateway never may. The rig plays them for controls, so that a fault has something to lose.
// Without the fault no shortcut loses anything.
import { randomUUID } from "node:crypto";
import { pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import type { Rig } from "./rig.ts";

export interface Shortcut {
  /** The caller already has its 2xx; `ask` really queues the command later. */
  promise(ask: () => Promise<unknown>): void;
  /** Resolves when no command is in transit any more. */
  rest(): Promise<void>;
}
export type MakeShortcut = (rig: Rig) => Shortcut;

/** How long a command stays where it is not safe. */
const HELD_MS = 600;

const eachOnItsWay = (carry: (ask: () => Promise<unknown>) => Promise<void>): Shortcut => {
  const ways = new Set<Promise<void>>();
  return {
    promise: (ask) => {
      // A command that cannot be queued in the end is lost, which is the point.
      const way = carry(ask)
        .catch(() => undefined)
        .finally(() => ways.delete(way));
      ways.add(way);
    },
    rest: async () => void (await Promise.all(ways)),
  };
};

/** Writes behind: for a moment the command is only in the memory of one node and dies with it. */
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

/** Writes behind: for a moment the command is only in Redis. */
export const fromRedis: MakeShortcut = ({ redis }) =>
  eachOnItsWay(async (ask) => {
    const key = `promised:${randomUUID()}`;
    const kept = await redis?.ask("SET", key, "1").catch(() => null);
    if (!kept) return void (await ask());
    await pause(time, HELD_MS);
    if ((await redis?.ask("EXISTS", key)) === ":1") await ask();
  });

const BUFFERED = 10;
/** Writes behind from a small buffer, one after another: while the database is unreachable, the oldest are dropped. */
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
      if (waiting.length > BUFFERED) waiting.shift();
      writing ??= write();
    },
    rest: async () => void (await writing),
  };
};

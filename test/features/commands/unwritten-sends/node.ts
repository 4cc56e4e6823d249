// One of two nodes of a device: the real feature over a database that it can be cut off from, as if it had been killed between two statements.

import type { Clock } from "../../../../server/core/clock.ts";
import type { DeviceNotifier } from "../../../../server/core/ports/delivery.ts";
import type { BusMessage } from "../../../../server/core/ports/pub-sub.ts";
import type { Bus } from "../../../../server/platform/cluster/bus.ts";
import { openMemoryBus } from "../../../../server/platform/cluster/bus-memory.ts";
import type { Db } from "../../../../server/platform/database/db.ts";
import { createCommandsFeature } from "../kit.ts";
import type { BusState } from "./programs.ts";

export type Feature = ReturnType<typeof createCommandsFeature>;

/** Breaks a promise on purpose, so that a control can see the test fail. */
export interface Sabotage {
  readonly sql?: (text: string) => string;
  /** The node that holds a device answers a canceller at once and writes nothing. */
  readonly settlesUnasked?: boolean;
  /** A session ends without its commands being written. */
  readonly endsUnwritten?: boolean;
}

export const SETTINGS = { batchPaceMs: 0, ackPaceMs: 0, writeSentAfterMs: 3_600_000, settleTimeoutMs: 40, sentGraceMs: 1_000 };

export class Killed extends Error {}

export interface Life {
  readonly feature: Feature;
  readonly nodeId: string;
  readonly isDead: () => boolean;
  /** Dies after so many more statements. */
  readonly doom: (statements: number) => void;
  /** Forgets everything, so that no timer of it stays. */
  readonly close: () => Promise<void>;
}

const mortal = (db: Db, { sql = (text) => text }: Sabotage, pass: () => boolean): Db => {
  const over = <T extends Pick<Db, "query">>(inner: T): T => ({
    ...inner,
    query: async (text: string, values?: readonly unknown[]) => (pass() ? inner.query(sql(text), values) : []),
  });
  return { ...over(db), tx: (run) => db.tx((tx) => run(over(tx as never))), sqlTx: (run) => db.sqlTx((tx) => run(over(tx as never))) };
};

export interface LifeOptions {
  readonly nodeId: string;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly sabotage: Sabotage;
  readonly session: Pick<DeviceNotifier, "takesNow" | "pushNow">;
}

export const startNode = async (db: Db, { nodeId, bus, clock, sabotage, session }: LifeOptions): Promise<Life> => {
  let left = Number.POSITIVE_INFINITY;
  let isClosed = false;
  const isDead = (): boolean => left <= 0;
  const pass = (): boolean => {
    if (isClosed) return false;
    if (isDead()) throw new Killed("the node is dead");
    left -= 1;
    return true;
  };
  const own: Bus = { ...bus, subscribe: (channel, handler) => bus.subscribe(channel, (message: BusMessage) => void (isDead() || handler(message))) };
  const feature = createCommandsFeature(mortal(db, sabotage, pass), { nodeId, bus: own, clock, settings: SETTINGS, random: () => 0.5, session });
  await feature.remote.open();
  const close = async (): Promise<void> => {
    isClosed = true;
    await Promise.all([feature.remote.close(), feature.writeSent(), feature.outbox.close()]);
  };
  const doom = (statements: number): void => {
    left = statements;
  };
  return { feature, nodeId, isDead, doom, close };
};

/** A bus that the program may cut. */
export const openCuttableBus = ({ settlesUnasked = false }: Sabotage): Bus & { state: BusState } => {
  const bus = openMemoryBus();
  const cuttable = {
    ...bus,
    state: "up" as BusState,
    publish: async (channel: string, message: BusMessage): Promise<boolean> => {
      if (cuttable.state !== "up") return cuttable.state === "swallowing";
      if (settlesUnasked && message["op"] === "settle") return bus.publish(`node:${String(message["from"])}`, { op: "settled", ask: message["ask"] ?? null });
      return bus.publish(channel, message);
    },
  };
  return cuttable;
};

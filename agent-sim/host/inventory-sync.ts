// Tells the gateway what the machine is and has: at the start, and when that has changed.
import { isDeepStrictEqual } from "node:util";
import { type Agent, type AgentMachine, createDueTimer, hasSucceeded, type Inventory, type Random, type Time } from "../agent/index.ts";
import { createReportPace } from "./report-pace.ts";

export interface InventorySyncOptions {
  readonly machine: Pick<AgentMachine, "inventory">;
  readonly call: Agent["call"];
  readonly time: Time;
  readonly random?: Random;
}

export interface InventorySync {
  /** The first report comes within this time, because a whole site may be starting. */
  start(windowMs?: number): void;
  stop(): void;
}

export const createInventorySync = ({ machine, call, time, random = Math.random }: InventorySyncOptions): InventorySync => {
  let stopped = true;
  const pace = createReportPace(random);
  /** What the gateway has. */
  let told: Inventory | null = null;

  /** Returns the delay before the next look. */
  const look = async (): Promise<number> => {
    const inventory = machine.inventory();
    if (isDeepStrictEqual(inventory, told)) return pace.usualMs();
    const answer = await call("PUT", "/v1/agent/inventory", inventory);
    if (hasSucceeded(answer)) told = inventory;
    return pace.afterAnswer(answer);
  };
  const timer = createDueTimer(time, () => void run());
  const schedule = (delayMs: number): void => {
    if (!stopped) timer.within(delayMs);
  };
  const run = async (): Promise<void> => {
    schedule(await look().catch(pace.afterError));
  };
  return {
    start: (windowMs = 0) => {
      stopped = false;
      schedule(random() * windowMs);
    },
    stop: () => {
      stopped = true;
      timer.cancel();
    },
  };
};

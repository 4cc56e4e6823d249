// The model's memory of a device's queue.
import type { CommandStatus } from "../../../../protocol/index.ts";

export interface Held {
  readonly id: string;
  readonly seq: number;
  readonly lane: string;
  readonly priority: number;
  readonly asksAck: boolean;
  readonly safe: boolean;
  readonly maxAttempts: number;
  /** Infinity means never. */
  readonly dies: number;
  status: CommandStatus;
  attempts: number;
  due: number;
  deadline: number | null;
  /** The epoch of the session that carries it, "poll", or null for nobody. */
  carrier: number | "poll" | null;
  workUntil: number | null;
  before: CommandStatus | null;
  ended: number | null;
  code: string | null;
  late: boolean;
  outcomeKept: boolean;
}

export interface Queue {
  now: number;
  epoch: number;
  connected: boolean;
  commands: Held[];
}

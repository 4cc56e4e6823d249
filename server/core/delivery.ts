// What the agent channel asks of the command queue. The queue owns every state; a session only claims, writes and reports.
import type { Ack, AckResult, CommandId, DeliveredCommand, DeviceId } from "../../protocol/index.ts";
import type { SqlTx } from "./events.ts";
import type { SystemScope } from "./scope.ts";

export interface DeviceRef {
  readonly tenantId: string;
  readonly deviceId: string;
}

export interface Want {
  readonly deviceId: string;
  /** The epoch this session was given at hello. A newer one in the database means: nothing for you. */
  readonly epoch: number;
  /** How many commands may be in flight on this device; what is open already counts against it. */
  readonly maxInFlight: number;
}

export interface Claim {
  readonly commands: readonly DeliveredCommand[];
  /** Something is still queued: it waits for its time, its lane or for credit. */
  readonly left: boolean;
}

export interface SessionStart {
  /** The new epoch, already written in the same transaction. */
  readonly epoch: number;
  /** hello.inFlight: every command the agent holds, finished ones without ack_ok included. */
  readonly inFlight: readonly { readonly commandId: string; readonly status: string }[];
  /** The agent has `journal.v1`. */
  readonly journal: boolean;
  /** The agent has `inflight.v1`: what it does not list it has lost. */
  readonly listsAll: boolean;
  /** The agent has `cancel.v1`. */
  readonly cancels: boolean;
  /** hello.handoffFrom named the session that was current: its frames have reached the agent. */
  readonly handoff?: boolean;
}

export interface Reconciliation {
  readonly commandId: string;
  readonly action: "continue" | "stop" | "forget";
}

export interface Settled {
  readonly reconcile: readonly Reconciliation[];
  readonly queuedCount: number;
  /** Call it after commit: tells live views and wakes the claim loop. */
  readonly notify: () => void;
}

export interface CommandDelivery {
  /** Committed as sent when it resolves; empty when the epoch is stale, nothing is due or nothing more may be in flight. Batched inside. */
  claim(want: Want): Promise<Claim>;
  /** The write was accepted: ends commands that ask for no ack, leaves the others as they are. */
  delivered(deviceId: string, epoch: number, commandIds: readonly string[]): Promise<void>;
  /** The write was refused, nothing reached the agent: the claim goes back and costs no attempt. */
  refused(deviceId: string, epoch: number, commandIds: readonly string[]): Promise<void>;
  /** Resolves after commit; batched inside. `refused` says why the ack could not be taken as it came: its word counts, and that is the answer. So it is for an unknown word. */
  ack(device: DeviceRef, ack: Ack & { readonly commandId: string }, refused?: string | null): Promise<AckResult>;
  /** Inside the transaction of hellos, after their epochs were raised: what older sessions left open meets what the agents list. Each device once; answers in order. */
  settle(tx: SqlTx, starts: readonly (DeviceRef & SessionStart)[]): Promise<readonly Settled[]>;
}

/** A command that another room wants done, as a consequence of what it writes itself. Times, lane and repeatability are those of its type. */
export interface CommandOrder {
  readonly deviceId: DeviceId;
  readonly type: string;
  readonly payload?: Readonly<Record<string, unknown>>;
  /** The same key on the same device makes one command, however often it is ordered; at most 200 characters. */
  readonly key: string;
  /** As `actorOf` writes it, or "system". */
  readonly orderedBy: string;
}

export interface Enqueued {
  /** In the order of the orders; a repeated key gives the command that is there. */
  readonly commandIds: readonly CommandId[];
  /** Call it after commit, never before: wakes the devices' sessions and tells live views. If it is lost, the sweep delivers. */
  readonly notify: () => void;
}

/**
 * Queues commands inside the caller's transaction: they exist if and only if what else it writes does. Locks the devices' rows, so presence, where
 * it is touched too, comes first. All or none: throws DEVICE_NOT_FOUND, COMMAND_QUEUE_FULL, COMMAND_TYPE_UNKNOWN, COMMAND_PAYLOAD_INVALID or
 * IDEMPOTENCY_KEY_REUSED (same key, other command) before anything is written. Types of the gateway itself (`svc.…`) pass the queue's bounds.
 */
export type Enqueue = (tx: SqlTx, scope: SystemScope, orders: readonly CommandOrder[]) => Promise<Enqueued>;

/** Hints to the node that holds a device's socket. Both may be lost: the sweep and the next hello make up for it. */
export interface Courier {
  /** Something became claimable for these devices. `nodeOf` is the database's word of a moment ago; whose node it does not know is looked up. */
  nudge(deviceIds: readonly string[], nodeOf?: (deviceId: string) => string | null): void;
  /** Credit or a lane became free: worth a claim only where the last one left something. */
  freed(deviceIds: readonly string[]): void;
  cancel(deviceId: string, order: CancelNotice): void;
}

export interface CancelNotice {
  readonly commandId: string;
  readonly reason?: string;
  readonly deadline: string;
}

// The ports between the agent channel and the command queue. The queue owns every state of a command; a session claims, writes and reports.
import type { Ack, AckResult, CommandId, DeliveredCommand, Details, DeviceId, ErrorCode } from "../../../protocol/index.ts";
import type { SqlTx } from "../events.ts";
import type { SystemScope } from "../scope.ts";

export interface DeviceRef {
  readonly tenantId: string;
  readonly deviceId: string;
}

export interface Want {
  readonly deviceId: string;
  /** The epoch of this session. If the database has a newer one, the session gets nothing. */
  readonly epoch: number;
  /** The number of commands that may be in flight on this device, those in flight already included. */
  readonly maxInFlight: number;
}

export interface Claim {
  readonly commands: readonly DeliveredCommand[];
  /** Commands are still queued: they wait for their time, their lane or for credit. */
  readonly left: boolean;
}

export interface SessionStart {
  /** The new epoch, already written in the same transaction. */
  readonly epoch: number;
  /** hello.inFlight: every command that the agent holds, including finished ones without ack_ok. */
  readonly inFlight: readonly { readonly commandId: string; readonly status: string }[];
  /** The agent has `journal.v1`. */
  readonly journal: boolean;
  /** The agent has `inflight.v1`: it has lost every command that it does not list. */
  readonly listsAll: boolean;
  /** The agent has `cancel.v1`. */
  readonly cancels: boolean;
  /** hello.handoffFrom named the current session, so its frames have reached the agent. */
  readonly handoff?: boolean;
}

export interface Reconciliation {
  readonly commandId: string;
  readonly action: "continue" | "stop" | "forget";
}

export interface Settled {
  readonly reconcile: readonly Reconciliation[];
  readonly queuedCount: number;
  /** Call it after the commit: updates live views and wakes the device's session. */
  readonly notify: () => void;
}

export interface CommandDelivery {
  /**
   * What the session sends now; empty when the epoch is stale, nothing is due or no credit is left. Commands that must not be delivered twice are committed
   * as sent by then, others a moment later. Claims of a node are batched.
   */
  claim(want: Want): Promise<Claim>;
  /** The socket took the frames: ends the commands that ask for no ack, and changes no other. */
  delivered(device: DeviceRef, epoch: number, commandIds: readonly string[]): Promise<void>;
  /** The socket refused the frames: the commands go back to the queue without losing an attempt. */
  refused(device: DeviceRef, epoch: number, commandIds: readonly string[]): Promise<void>;
  /** Writes at once what the device's session here has sent, because it has ended or another one may begin elsewhere. */
  writeSent(deviceId: string): void;
  /** Whether the device's session here has sent something that is not written yet. */
  holds(deviceId: string): boolean;
  /**
   * Resolves after the commit; acks of a node are batched. `refused` is the error of a damaged ack: the ack's status counts, and the answer carries the
   * error. An unknown status is answered the same way.
   */
  ack(device: DeviceRef, ack: Ack & { readonly commandId: string }, refused?: string | null): Promise<AckResult>;
  /**
   * Call it in the transaction of the hellos, after raising their epochs: compares what older sessions left open with what the agents list. Takes each
   * device once; answers in order.
   */
  settle(tx: SqlTx, starts: readonly (DeviceRef & SessionStart)[]): Promise<readonly Settled[]>;
}

/** A command that another feature orders together with its own writes. Its type defines its times, lane and repeatability. */
export interface CommandOrder {
  readonly deviceId: DeviceId;
  readonly type: string;
  readonly payload?: Readonly<Record<string, unknown>>;
  /** Orders with the same key on the same device make one command; at most 200 characters. */
  readonly key: string;
  /** In the form of `actorOf`, or "system". */
  readonly orderedBy: string;
  /** These two instead of its type's. */
  readonly executionTimeoutSeconds?: number;
  readonly ttlSeconds?: number;
}

export interface Enqueued {
  /** In the order of the orders; a repeated key returns the existing command. */
  readonly commandIds: readonly CommandId[];
  /** Call it after the commit, never before: wakes the devices' sessions and updates live views. If it is lost, the sweep delivers. */
  readonly notify: () => void;
}

/**
 * Queues commands inside the caller's transaction, so they exist if and only if its other writes do. Locks the devices' rows: a caller that also writes
 * presence does that first. Queues all or none: throws DEVICE_NOT_FOUND, COMMAND_QUEUE_FULL, COMMAND_TYPE_UNKNOWN, COMMAND_PAYLOAD_INVALID or
 * IDEMPOTENCY_KEY_REUSED (same key, other command) before it writes. The gateway's own types (`svc.…`) are exempt from the queue's bounds.
 */
export type Enqueue = (tx: SqlTx, scope: SystemScope, orders: readonly OneOfManyOrders[]) => Promise<Enqueued>;

/** What a person may say of a command beside its type and payload; what is absent follows from its type. */
export interface DeliveryTerms {
  readonly requiresAck?: boolean;
  readonly lane?: string | undefined;
  readonly priority?: number;
  readonly ttlSeconds?: number | undefined;
  /** Null: never. */
  readonly expiresAt?: Date | null | undefined;
  readonly notBefore?: Date | undefined;
  readonly maxAttempts?: number;
  /** A device that is offline refuses it. */
  readonly onlyOnline?: boolean;
}

export interface OneOfManyOrders extends CommandOrder {
  readonly terms?: DeliveryTerms;
}

export type OrderResult =
  | { readonly kind: "ordered"; readonly commandId: CommandId }
  /** `details.scope` of COMMAND_QUEUE_FULL says whether the device's queue is full or the tenant's share. */
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string; readonly details: Details };

export interface EnqueuedEach {
  /** In the order of the orders. */
  readonly results: readonly OrderResult[];
  /** As `Enqueued.notify`. */
  readonly notify: () => void;
}

/**
 * As `Enqueue`, but each order is accepted or refused on its own: a full queue or a deleted device refuses one and not all. It is for changes of many
 * devices, so it leaves a fifth of the tenant's queue to everybody else.
 */
export type EnqueueEach = (tx: SqlTx, scope: SystemScope, orders: readonly OneOfManyOrders[]) => Promise<EnqueuedEach>;

/** Notifies the session of a device, on whichever node it is. A message may be lost: the sweep and the next hello make up for it. */
export interface DeviceNotifier {
  /** These devices may have commands due. `nodeOf` returns the node that the database just named; if it returns null, the notifier finds the owner itself. */
  nudge(deviceIds: readonly string[], nodeOf?: (deviceId: string) => string | null): void;
  /** Credit or a lane became free: sessions whose last claim left commands claim again. */
  freed(deviceIds: readonly string[]): void;
  cancel(deviceId: string, order: CancelNotice): void;
  /** Whether the device's session on this node has this epoch and takes a command from memory now. Otherwise nudge it. */
  takesNow(deviceId: string, epoch: number): boolean;
  /** Writes a command to that session. Only in the turn of the event loop in which `takesNow` said so. */
  pushNow(deviceId: string, command: DeliveredCommand): void;
}

export interface CancelNotice {
  readonly commandId: string;
  readonly reason?: string;
  readonly deadline: string;
}

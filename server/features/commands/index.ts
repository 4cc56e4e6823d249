// The command feature: a durable queue per device, one state machine for socket and poll, and what people see of it. The way of a command:
//
// 1. Enqueue. operations/queue.ts takes a request, enqueue.ts the order of another feature. admission.ts decides under the device's lock,
//    store/create.ts writes the row, `queued`.
// 2. Commit, then after-commit.ts: telemetry, live views, polls that wait here, a nudge to the node that holds the device's socket.
// 3. Claim. The socket (delivery.ts) or a poll (operations/agent.ts) takes what is due through store/claim.ts, `sent`, and sends it.
// 4. Ack. transitions.ts locks the row, lets rules.ts decide and saves row, history and durable event in one transaction; the ack is answered
//    after its commit. Cancelling, hellos and deadlines take the same way with other events.
// 5. End. after-commit.ts again: it wakes calls that wait for the command, here (waiters.ts) or on another node (remote-waiters.ts), and
//    the session claims again with the lane and credit that became free.
//
// Every step after a commit is a hint. jobs.ts makes up for lost ones: the reaper ends what is past its deadline, the sweep finds what is due.
import { type CommandId, contract, isOpen } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Emit, Happened, Hint, SqlTx } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import type { PollPresence } from "../../core/ports/agent-sessions.ts";
import type { CommandHistory } from "../../core/ports/command-history.ts";
import type { CommandDelivery, DeviceNotifier, DeviceRef, Enqueue, EnqueueEach } from "../../core/ports/delivery.ts";
import type { DeviceLookup } from "../../core/ports/lookups.ts";
import type { Tracing } from "../../core/ports/trace.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { CreateBatch } from "../../platform/database/batch.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Log } from "../../platform/telemetry/log.ts";
import type { Feature } from "../kit.ts";
import { type CommandMeters, createCommandTelemetry } from "./command-telemetry.ts";
import { createEnqueue, createEnqueueEach } from "./enqueue.ts";
import { reaperJob, retentionJob, sweepJob } from "./jobs.ts";
import { createAgentOperations } from "./operations/agent.ts";
import { createCancelOperations, createCancelOrdered, createHoldUndelivered } from "./operations/cancel.ts";
import { createCheckOrder, createQueueOperation } from "./operations/queue.ts";
import { createQueueManyOperation } from "./operations/queue-many.ts";
import { createReadOperations } from "./operations/read.ts";
import { createOutcomes, type OutcomeRegistry } from "./outcomes.ts";
import { createQueueQuota } from "./queue-quota.ts";
import { createAfterCommit } from "./sending/after-commit.ts";
import { createDelivery } from "./sending/delivery.ts";
import { createSending } from "./sending/sending.ts";
import { createUnwrittenSends } from "./sending/unwritten-sends.ts";
import { createWriteBeforeCancel } from "./sending/write-before-cancel.ts";
import { type CommandSettings, defaultSettings } from "./settings.ts";
import { writeSent } from "./store/claim.ts";
import { countOpenSeen } from "./store/list.ts";
import { lockOpen } from "./store/lock.ts";
import { countOpen, findCommand, findPending, findStates } from "./store/read.ts";
import type { CommandRow } from "./store/rows.ts";
import { countNewer } from "./store/stuck.ts";
import { findHistories } from "./store/timeline.ts";
import { createStuckCommands } from "./stuck.ts";
import { createTransitions } from "./transitions.ts";
import { createRemoteChanges } from "./waiting/remote-changes.ts";
import { createRemoteWaiters, type RemoteWaitersDeps } from "./waiting/remote-waiters.ts";
import { createWaiters } from "./waiting/waiters.ts";

export type { CommandMeters } from "./command-telemetry.ts";
export type { CommandSettings } from "./settings.ts";

export interface CommandsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  /** The relay has events to dispatch. */
  readonly wakeRelay: () => void;
  readonly hint: Hint;
  readonly notifier: DeviceNotifier;
  readonly devices: DeviceLookup;
  readonly presence: PollPresence;
  readonly createBatch: CreateBatch;
  /** The outcome handlers of the features that order commands. */
  readonly outcomes?: OutcomeRegistry;
  readonly nodeId: string;
  readonly bus: RemoteWaitersDeps["bus"];
  /** The bus channel of one node. */
  readonly channelOf: (nodeId: string) => string;
  readonly settings?: Partial<CommandSettings>;
  readonly meters?: CommandMeters;
  readonly tracing?: Tracing | null;
  /** Gets a line per step of a command that carries a trace. */
  readonly log?: Pick<Log, "info">;
  /** False while hints between nodes get lost: the sweep then runs more often. */
  readonly hintsArrive?: () => boolean;
  /** Viewers of other nodes read the tenant's commands again. */
  readonly tellNodes?: (tenantId: string) => void;
  /** For the viewers of this node only. */
  readonly showHere?: (event: Happened) => void;
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Evenly spread in [0, 1): spreads redeliveries. */
  readonly random?: () => number;
}

export interface OpenOrder {
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** When the gateway gives it up. */
  readonly deadlineAt: Date;
}

export interface Commands extends Feature<typeof contract.commands> {
  readonly jobs: readonly Job[];
  /** The queue as the agent channel uses it. */
  readonly delivery: CommandDelivery;
  /** Orders commands for other features. */
  readonly enqueue: Enqueue;
  readonly enqueueEach: EnqueueEach;
  /** Throws what the call `queue` would say of the order, whatever the device. */
  readonly checkOrder: ReturnType<typeof createCheckOrder>;
  /** How it stands with commands that another feature ordered. */
  readonly statesOf: typeof findStates;
  /** Finds due commands for the sockets of this node now. */
  sweep(): Promise<void>;
  /** Answers every waiting call now and refuses new waits, because the node shuts down. */
  endWaits(): void;
  /** What this node and others ask each other: about waiting calls, and before a cancellation. */
  readonly remote: { open(): Promise<void>; close(): Promise<void> };
  /** Writes what the sessions of this node have sent; call it when they have ended. */
  writeSent(): Promise<void>;
  /** Something changed on another node: wakes the waiting calls that it concerns. */
  recheck(): void;
  /** Another node changed the tenant: shows the viewers here the state of its open commands. */
  showRecent(tenantId: string): void;
  /** Cancels the device's open commands, in the transaction that pairs it again, removes or resets it (T24). Call `notify` after commit. */
  resetDevice(tx: SqlTx, device: DeviceRef, reason: string): Promise<{ readonly canceled: number; readonly notify: () => void }>;
  /** Cancels a command that another feature ordered, in that feature's transaction. */
  readonly cancelOrdered: ReturnType<typeof createCancelOrdered>;
  /** Holds those of another feature's orders that no device has, to cancel them in that feature's transaction. */
  readonly holdUndelivered: ReturnType<typeof createHoldUndelivered>;
  /** A command that the device has and has not ended; null for any other. */
  openOrder(scope: SystemScope, deviceId: string, commandId: string): Promise<OpenOrder | null>;
  /** The number of commands that wait for the device, and the commands that it must cancel. */
  pending(device: DeviceRef): Promise<{ readonly queued: number; readonly cancel: readonly CommandId[] }>;
  /** Commands that a trace names, with their histories; those of other tenants are left out. */
  histories(scope: SystemScope, commandIds: readonly string[]): Promise<readonly CommandHistory[]>;
  /** Open commands that the caller sees, and those of them past their deadline. */
  countOpen(scope: SystemScope): Promise<{ readonly open: number; readonly overdue: number }>;
  /** Open commands by status, and those that the reaper missed: the second number must be 0. */
  /** Commands queued in the last minute, over all tenants. */
  perMinute(): Promise<number>;
  commandGauges(): Promise<{ readonly open: Readonly<Record<string, number>>; readonly pastDeadline: number }>;
}

export const createCommands = (deps: CommandsDeps): Commands => {
  const settings = { ...defaultSettings, ...deps.settings };
  const { db, onError = () => undefined, showHere = () => undefined, tellNodes = () => undefined } = deps;
  const waiters = createWaiters({ db, settings, onError });
  const remoteChanges = createRemoteChanges({ db, showHere, onError });
  const remoteWaiters = createRemoteWaiters({ ...deps, onEnded: waiters.wake, onError });
  const telemetry = createCommandTelemetry(deps);
  const outcomes = createOutcomes({ db, registry: deps.outcomes ?? new Map(), onError });
  const transitions = createTransitions({ ...deps, outcomes, settings, random: deps.random ?? Math.random });
  const onWritten = (rows: readonly CommandRow[]): void => {
    for (const tenantId of new Set(rows.map((row) => row.tenantId))) tellNodes(tenantId);
  };
  const unwritten = createUnwrittenSends({ ...deps, settings, writeSent: (rows) => writeSent(db, rows), onWritten, onError });
  const sending = createSending({ ...deps, unwritten, transitions });
  const writeBeforeCancel = createWriteBeforeCancel({ ...deps, unwritten, timeoutMs: settings.settleTimeoutMs, onError });
  const shared = {
    ...deps,
    settings,
    waiters,
    remoteWaiters,
    telemetry,
    unwritten,
    sending,
    writeBeforeCancel,
    onError,
    quota: createQueueQuota(settings.maxOpenPerTenant),
  };
  const afterCommit = createAfterCommit({ ...shared, remoteChanges });
  const delivery = createDelivery({ ...shared, outcomes, afterCommit, transitions });
  const parts = { ...shared, afterCommit, transitions, delivery };
  const sweep = sweepJob(parts);

  return {
    handlers: implement(contract.commands, {
      ...createQueueOperation(parts),
      ...createQueueManyOperation(parts),
      ...createReadOperations(parts),
      ...createAgentOperations(parts),
      ...createCancelOperations(parts),
    }),
    delivery,
    enqueue: createEnqueue(parts),
    enqueueEach: createEnqueueEach(parts),
    checkOrder: createCheckOrder(parts),
    statesOf: findStates,
    countOpen: (scope) => countOpenSeen(db, scope),
    cancelOrdered: createCancelOrdered(parts),
    holdUndelivered: createHoldUndelivered(parts),
    jobs: [reaperJob(parts), sweep, waiters.job, retentionJob(parts), outcomes.job],
    sweep: sweep.now,
    endWaits: waiters.close,
    remote: {
      open: async () => {
        await Promise.all([remoteWaiters.open(), writeBeforeCancel.open()]);
      },
      close: async () => {
        await Promise.all([remoteWaiters.close(), writeBeforeCancel.close()]);
      },
    },
    writeSent: unwritten.close,
    recheck: waiters.recheck,
    showRecent: remoteChanges.show,
    resetDevice: async (tx, device, reason) => {
      const { transitions: made } = await transitions.apply(
        tx,
        await lockOpen(tx, device),
        () => [{ kind: "reset", reason }],
        () => "system",
      );
      return { canceled: made.length, notify: () => afterCommit.changed(made) };
    },
    openOrder: async (scope, deviceId, commandId) => {
      const row = await findCommand(db, scope, commandId, deviceId);
      if (row === null || !isOpen(row.status)) return null;
      const deadlineMs = row.execDeadlineAt ?? (row.expiresAt ?? row.issuedAt) + row.execTimeoutSeconds * 1_000;
      return { type: row.type, payload: row.payload, deadlineAt: new Date(deadlineMs) };
    },
    histories: (scope, commandIds) => findHistories(db, scope, commandIds),
    pending: (device) => findPending(deps.db, device),
    commandGauges: () => countOpen(deps.db, settings.reaperEveryMs * 2),
    perMinute: () => countNewer(deps.db, MINUTE_MS, COUNTED_UP_TO),
    stuck: createStuckCommands(deps.db),
  };
};

const MINUTE_MS = 60_000;
const COUNTED_UP_TO = 1_000_000;

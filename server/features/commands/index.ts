// The command room: a durable queue per device, one state machine for socket and poll, and what people see of it.

import { type CommandId, contract } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { CommandDelivery, DeviceNotifier, DeviceRef, Enqueue } from "../../core/delivery.ts";
import type { Emit, Hint, SqlTx } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Tracing } from "../../core/trace.ts";
import type { CreateBatch } from "../../platform/batch.ts";
import type { Db } from "../../platform/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Log } from "../../platform/log.ts";
import type { Feature } from "../kit.ts";
import { createDelivery } from "./delivery.ts";
import { createElsewhere, type ElsewhereDeps } from "./elsewhere.ts";
import { createEnqueue } from "./enqueue.ts";
import { createHeadroom } from "./headroom.ts";
import { reaperJob, retentionJob, sweepJob } from "./jobs.ts";
import { agentSide } from "./operations/agent.ts";
import { cancelling } from "./operations/cancel.ts";
import { queueing } from "./operations/queue.ts";
import { reading } from "./operations/read.ts";
import { createRecent } from "./recent.ts";
import { type CommandSettings, defaultSettings } from "./settings.ts";
import { lockOpen } from "./store/change.ts";
import { countOpen, findPending } from "./store/read.ts";
import { createTransitions } from "./transitions.ts";
import { createWaits } from "./waits.ts";
import { type CommandMeters, createWitness } from "./witness.ts";

export type { CommandSettings } from "./settings.ts";
export type { CommandMeters } from "./witness.ts";

/** What this room needs to know of devices. */
export interface DeviceLookup {
  find(scope: SystemScope, deviceId: string): Promise<{ readonly deviceId: string; readonly status: string; readonly lastSeenAt: Date | null } | null>;
}

/** A poll counts as life of the device. */
export interface PollPresence {
  /** Throws DUPLICATE_IDENTITY when another process of this identity lives. */
  polled(device: DeviceRef, poll: { readonly instanceId: string | null; readonly aliveForMs: number }): Promise<void>;
}

export interface CommandsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly hint: Hint;
  readonly courier: DeviceNotifier;
  readonly devices: DeviceLookup;
  readonly presence: PollPresence;
  readonly createBatch: CreateBatch;
  readonly nodeId: string;
  readonly bus: ElsewhereDeps["bus"];
  /** Where a node hears what is meant for it alone. */
  readonly channelOf: (nodeId: string) => string;
  readonly settings?: Partial<CommandSettings>;
  readonly meters?: CommandMeters;
  readonly tracing?: Tracing | null;
  /** Told of each step of a command that carries a trace. */
  readonly log?: Pick<Log, "info">;
  /** False while hints between nodes get lost: the sweep looks more often then. */
  readonly hintsArrive?: () => boolean;
  /** As `hint`, but to the viewers of this node alone. */
  readonly showHere?: Hint;
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Evenly spread in [0, 1): spreads redeliveries. */
  readonly random?: () => number;
}

export interface Commands extends Feature<typeof contract.commands> {
  readonly jobs: readonly Job[];
  /** The channel's side of the queue. */
  readonly delivery: CommandDelivery;
  /** For rooms whose own changes make commands necessary. */
  readonly enqueue: Enqueue;
  /** Finds what is due for the sockets of this node, at once. */
  sweep(): Promise<void>;
  /** Calls that wait are answered with what there is, and none waits any more: the node is leaving. */
  endWaits(): void;
  /** Between the nodes: who waits where for a command's end. */
  readonly elsewhere: { open(): Promise<void>; close(): Promise<void> };
  /** Something happened on another node: calls that wait look whether it is theirs. */
  look(): void;
  /** Something happened with the tenant on another node: its viewers here are shown where its open commands stand. */
  showRecent(tenantId: string): void;
  /** In the transaction that pairs a device anew, revokes, deletes or resets it (T24). Call `notify` after commit. */
  resetDevice(tx: SqlTx, device: DeviceRef, reason: string): Promise<{ readonly canceled: number; readonly notify: () => void }>;
  /** Commands that wait for the device, and those that it is to stop. */
  pending(device: DeviceRef): Promise<{ readonly queued: number; readonly cancel: readonly CommandId[] }>;
  /** Open commands by status, and those that no reaper has touched in time: the second is to be 0. */
  commandGauges(): Promise<{ readonly open: Readonly<Record<string, number>>; readonly pastDeadline: number }>;
}

export const createCommands = (deps: CommandsDeps): Commands => {
  const settings = { ...defaultSettings, ...deps.settings };
  const { db, onError = () => undefined, showHere = () => undefined } = deps;
  const waits = createWaits({ db, settings, onError });
  const recent = createRecent({ db, showHere, onError });
  const hint: Hint = (event) => {
    recent.note(event);
    deps.hint(event);
  };
  // Whoever holds the device's socket is told, and whoever polls for it here.
  const courier: DeviceNotifier = {
    cancel: (deviceId, order) => {
      waits.wake([deviceId]);
      deps.courier.cancel(deviceId, order);
    },
    nudge: (deviceIds, nodeOf) => {
      waits.wake(deviceIds);
      deps.courier.nudge(deviceIds, nodeOf);
    },
    freed: (deviceIds) => {
      waits.wake(deviceIds);
      deps.courier.freed(deviceIds);
    },
  };
  const elsewhere = createElsewhere({ ...deps, ended: waits.wake, onError });
  const ends = {
    wake: (commandIds: readonly string[]): void => {
      waits.wake(commandIds);
      elsewhere.tell(commandIds);
    },
  };
  const parts = { ...deps, hint, courier, settings, waits, elsewhere, headroom: createHeadroom(settings.maxOpenPerTenant), witness: createWitness(deps) };
  const transitions = createTransitions({ ...parts, waits: ends, random: deps.random ?? Math.random });
  const delivery = createDelivery({ ...parts, transitions });
  const room = { ...parts, transitions, delivery };
  const sweep = sweepJob(room);

  return {
    handlers: implement(contract.commands, { ...queueing(room), ...reading(room), ...agentSide(room), ...cancelling(room) }),
    delivery,
    enqueue: createEnqueue(room),
    jobs: [reaperJob(room), sweep, waits.job, retentionJob(room)],
    sweep: sweep.now,
    endWaits: waits.close,
    elsewhere,
    look: waits.look,
    showRecent: recent.show,
    resetDevice: async (tx, device, reason) => {
      const { transitions: made } = await transitions.apply(
        tx,
        await lockOpen(tx, device),
        () => [{ kind: "reset", reason }],
        () => "system",
      );
      return { canceled: made.length, notify: () => transitions.tell(made) };
    },
    pending: (device) => findPending(deps.db, device),
    commandGauges: () => countOpen(deps.db, settings.reaperEveryMs * 2),
  };
};

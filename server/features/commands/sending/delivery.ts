// The agent socket's side of the queue: a session reads what it may send, sends it, and acknowledges. session-reconcile.ts compares at its hello.
import { type Ack, type AckResult, toAckStatus } from "../../../../protocol/index.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Hide } from "../../../core/ports/command-outcomes.ts";
import type { CommandDelivery, DeviceRef, Want } from "../../../core/ports/delivery.ts";
import { given } from "../../../core/rows/records.ts";
import type { CreateBatch } from "../../../platform/database/batch.ts";
import type { Db } from "../../../platform/database/db.ts";
import { batchBounds } from "../batches.ts";
import type { CommandTelemetry } from "../command-telemetry.ts";
import type { Outcomes } from "../outcomes.ts";
import { boundOutput } from "../payload.ts";
import { toDelivered } from "../records.ts";
import { isWrittenLater } from "../rules.ts";
import { ackResult } from "../rules-ack.ts";
import type { CommandSettings } from "../settings.ts";
import type { AckCall, AckEvent, CommandEvent } from "../state.ts";
import { peek, writeSent } from "../store/claim.ts";
import { lockCommands, lockOfDevice } from "../store/lock.ts";
import type { CommandRow } from "../store/rows.ts";
import type { Applied, Transition, Transitions } from "../transitions.ts";
import type { AfterCommit } from "./after-commit.ts";
import { createFinish } from "./finish-from-memory.ts";
import { type CommandSending, sentNow, untold } from "./sending.ts";
import { createSessionReconcile } from "./session-reconcile.ts";
import type { UnwrittenSends } from "./unwritten-sends.ts";

export interface DeliveryDeps {
  readonly db: Db;
  readonly transitions: Transitions;
  readonly outcomes: Pick<Outcomes, "has" | "hides">;
  readonly afterCommit: Pick<AfterCommit, "changed" | "remind">;
  readonly telemetry: Pick<CommandTelemetry, "claimed">;
  readonly createBatch: CreateBatch;
  readonly unwritten: UnwrittenSends;
  readonly sending: CommandSending;
  readonly clock: Pick<Clock, "now">;
  /** The relay has events to dispatch. */
  readonly wakeRelay: () => void;
  readonly settings: CommandSettings;
  readonly onError: (error: unknown) => void;
}

interface Claimed {
  readonly rows: readonly CommandRow[];
  /** Something is still queued for the device. */
  readonly left: boolean;
}

export const createDelivery = (deps: DeliveryDeps): CommandDelivery => {
  const { db, transitions, afterCommit, telemetry, createBatch, unwritten, settings, onError } = deps;
  const bounds = batchBounds("agents", settings);
  const claim = createBatch(createClaim(deps), bounds);
  const ack = createBatch(createAck(deps), { ...bounds, paceMs: settings.ackPaceMs });

  const report = async (device: DeviceRef, commandIds: readonly string[], event: CommandEvent): Promise<void> => {
    if (commandIds.length === 0) return;
    const { transitions: made } = await db.sqlTx(async (tx) =>
      transitions.apply(
        tx,
        await lockOfDevice(tx, device, commandIds),
        () => [event],
        () => "session",
      ),
    );
    afterCommit.changed(made);
  };

  /** What was only in hand was never written as sent, so there is nothing to take back. */
  const putBack = (commandIds: readonly string[]): readonly string[] => {
    const items = commandIds.flatMap((commandId) => unwritten.find(commandId) ?? []);
    for (const item of items) unwritten.drop(item);
    afterCommit.changed(items.map(({ queued }): Transition => ({ row: queued, from: "sent", step: { patch: { status: "queued" }, code: null } })));
    return commandIds.filter((commandId) => !items.some(({ queued }) => queued.commandId === commandId));
  };

  return {
    claim: async (want) => {
      const { rows, left } = await claim(want);
      telemetry.claimed(want.deviceId, rows.length);
      afterCommit.changed(rows.map(sentNow));
      return { commands: rows.map(toDelivered), left };
    },
    delivered: (device, epoch, commandIds) => report(device, commandIds, { kind: "written", epoch }),
    refused: (device, epoch, commandIds) => report(device, putBack(commandIds), { kind: "refused", epoch }),
    writeSent: (deviceId) => {
      if (unwritten.of(deviceId).length > 0) void unwritten.write([deviceId]).catch(onError);
    },
    holds: (deviceId) => unwritten.of(deviceId).length > 0,
    ack: async (device, given, refused = null) =>
      ack({ tenantId: device.tenantId, deviceId: device.deviceId, commandId: given.commandId, event: toAckEvent(given, refused, settings) }),
    settle: createSessionReconcile({ transitions, afterCommit, unwritten }),
  };
};

/** The code of an ack with an unknown status word. */
export const STATUS_UNKNOWN = "ACK_STATUS_UNKNOWN";
/** The code of a success whose output cannot be used. */
const OUTPUT_INVALID = "INVALID_OUTPUT";
const NO_MISFITS: ReadonlySet<string> = new Set();
const NOTHING: Claimed = { rows: [], left: false };

const createClaim = ({ db, unwritten, sending }: DeliveryDeps) => {
  /** If a batch has two sessions of one device, only the newer claims; if it has two claims of one session, the first gets everything. */
  const newestOf = (wants: readonly Want[]): ReadonlyMap<string, Want> => {
    const newest = new Map<string, Want>();
    for (const want of wants) if (want.epoch > (newest.get(want.deviceId)?.epoch ?? -1)) newest.set(want.deviceId, want);
    return newest;
  };

  /** A command that must not be delivered twice is sent once it is written. */
  const writeNow = async (rows: readonly CommandRow[]): Promise<ReadonlySet<string>> => (rows.length === 0 ? new Set() : writeSent(db, rows));

  return async (wants: readonly Want[]): Promise<readonly Claimed[]> => {
    const newest = newestOf(wants);
    const peeked = await peek(
      db,
      [...newest.values()].map((want) => ({ ...want, held: unwritten.of(want.deviceId).map(({ queued }) => queued.seq) })),
    );
    const first = [...newest].flatMap(([deviceId, { epoch }]) => (peeked.get(deviceId)?.rows ?? []).map((row) => ({ row, epoch })));
    const waits = (row: CommandRow): boolean => !isWrittenLater(row) || row.liveEpoch === null || unwritten.isCautious(row.deviceId);
    const later = first.flatMap(({ row, epoch }) => (waits(row) ? [] : (sending.take(row, epoch) ?? [])));
    const atOnce = first.flatMap(({ row, epoch }) => (waits(row) ? (sending.send(row, epoch) ?? []) : []));
    const written = await writeNow(atOnce);
    const sent = new Map([...atOnce.filter(({ commandId }) => written.has(commandId)), ...later].map((row) => [row.commandId as string, row]));
    return wants.map((want) => {
      const found = newest.get(want.deviceId) === want ? peeked.get(want.deviceId) : undefined;
      if (found === undefined) return NOTHING;
      const rows = found.rows.flatMap(({ commandId }) => sent.get(commandId) ?? []);
      return { rows, left: found.left || rows.length < found.rows.length };
    });
  };
};

const createAck = (deps: DeliveryDeps) => {
  const { db, transitions, outcomes, afterCommit, unwritten } = deps;
  const finish = createFinish(deps);

  const applyLocked = async (perCommand: ReadonlyMap<string, readonly AckCall[]>): Promise<Pick<Applied, "effects" | "misfits">> => {
    const refs = [...perCommand.values()].flatMap(([call]) => (call === undefined ? [] : [call]));
    const {
      effects,
      misfits,
      transitions: made,
    } = await db.sqlTx(async (tx) => {
      const locked = await lockCommands(tx, refs);
      const saysOf = (row: CommandRow): readonly AckEvent[] => (perCommand.get(keyOf(row)) ?? []).map(({ event }) => event);
      const hides = await outcomes.hides(
        tx,
        locked.rows.filter((row) => saysOf(row).some(saysMore)),
      );
      return transitions.apply(
        tx,
        locked,
        (row) => [...untold(row, unwritten), ...saysOf(row).map((event) => hidden(event, hides.get(row.commandId)))],
        ({ deviceId }, event) => (event.kind === "claimed" ? "session" : deviceId),
      );
    });
    for (const { commandId } of refs) {
      const item = unwritten.find(commandId);
      if (item !== undefined && effects.has(commandId)) unwritten.drop(item);
    }
    // Viewers know already that it was sent.
    afterCommit.changed(made.filter(({ row, from }) => !(from === "queued" && row.status === "sent")));
    return { effects, misfits };
  };

  return async (calls: readonly AckCall[]): Promise<readonly AckResult[]> => {
    const perCommand = grouped(calls, keyOf);
    const finished = await finish([...perCommand.values()]);
    const rest = new Map([...perCommand].filter(([, group]) => !group.some(({ commandId }) => finished.has(commandId))));
    // A command whose end a feature handles never ends from memory, so it is no misfit.
    const { effects: applied, misfits } = rest.size === 0 ? { effects: finished, misfits: NO_MISFITS } : await applyLocked(rest);
    return calls.map((call) => {
      const { commandId } = call;
      const group = perCommand.get(keyOf(call)) ?? [];
      const effects = finished.get(commandId) ?? applied.get(commandId);
      const effect = effects?.[effects.length - group.length + group.indexOf(call)];
      // A command id is one device's: another's call about it has found nothing.
      if (effect === undefined || effect.before.deviceId !== call.deviceId) return { commandId, status: null, result: "unknown" };
      const result = ackResult(effect.before, call.event, effect.step);
      const { status } = effect.after;
      if (result === "applied" && status === "succeeded" && misfits.has(commandId)) return { commandId, status, result: "refused", code: OUTPUT_INVALID };
      const { refused } = call.event;
      return { commandId, status, result, ...(refused === null ? {} : { code: refused }) };
    });
  };
};

/** More than how far the command is. */
const saysMore = ({ output, code, progress }: AckEvent): boolean => (output !== undefined && output !== null) || code !== null || progress?.message != null;

const hidden = (event: AckEvent, hide: Hide | undefined): AckEvent => {
  if (hide === undefined) return event;
  const { output, outputTruncated, code, progress } = event;
  const told = progress === null ? null : { ...progress, message: progress.message === null ? null : hide.text(progress.message) };
  return { ...event, code: code === null ? null : hide.code(code), output: hide.output(output, outputTruncated), progress: told };
};

const grouped = <T>(items: readonly T[], keyOfItem: (item: T) => string): ReadonlyMap<string, readonly T[]> => {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOfItem(item));
    if (group === undefined) groups.set(keyOfItem(item), [item]);
    else group.push(item);
  }
  return groups;
};

const keyOf = ({ tenantId, deviceId, commandId }: AckCall | CommandRow): string => `${tenantId} ${deviceId} ${commandId}`;

const toProgress = ({ pct, message, ...more }: NonNullable<Ack["progress"]>) => ({ pct: pct ?? null, message: message ?? null, ...given(more) });

/** An unknown word may mean progress or an end. It proves that the agent has the command; a later word or the deadline decides the rest. */
const toAckEvent = (ack: Ack, refused: string | null, { maxOutputBytes }: CommandSettings): AckEvent => {
  const word = toAckStatus(ack.status);
  const { output, truncated } = boundOutput(ack.output, maxOutputBytes);
  const progress = ack.progress === undefined ? null : toProgress(ack.progress);
  return {
    kind: "ack",
    word: word ?? "received",
    raw: ack.status,
    output,
    outputTruncated: truncated || ack.outputTruncated === true,
    code: ack.code ?? null,
    progress,
    refused: word === null ? STATUS_UNKNOWN : refused,
  };
};

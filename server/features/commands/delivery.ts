// The agent socket's side of the queue: a hello settles what older sessions left open, then the session claims, reports its writes and acknowledges.
import { type Ack, type AckResult, toAckStatus } from "../../../protocol/index.ts";
import type { CommandDelivery, DeviceRef, SessionStart, Settled, Want } from "../../core/delivery.ts";
import type { SqlTx } from "../../core/events.ts";
import type { CreateBatch } from "../../platform/batch.ts";
import type { Db } from "../../platform/db.ts";
import type { AfterCommit } from "./after-commit.ts";
import type { CommandTelemetry } from "./command-telemetry.ts";
import { boundOutput } from "./payload.ts";
import { reconcile } from "./rules.ts";
import { ackResult } from "./rules-ack.ts";
import type { CommandSettings } from "./settings.ts";
import type { AckEvent, CommandEvent } from "./state.ts";
import { lockCommands, lockForSettling, lockOfDevice } from "./store/change.ts";
import { type Claimed, claimForSessions } from "./store/claim.ts";
import { countOpenOf, type OpenCount } from "./store/read.ts";
import { type CommandRow, canSplit, toDelivered } from "./store/rows.ts";
import type { Transition, Transitions } from "./transitions.ts";

export interface DeliveryDeps {
  readonly db: Db;
  readonly transitions: Transitions;
  readonly afterCommit: Pick<AfterCommit, "changed" | "remind">;
  readonly telemetry: Pick<CommandTelemetry, "claimed">;
  readonly createBatch: CreateBatch;
  readonly nodeId: string;
  readonly settings: CommandSettings;
}

interface AckCall extends DeviceRef {
  readonly commandId: string;
  readonly event: AckEvent;
}

export const createDelivery = ({ db, transitions, afterCommit, telemetry, createBatch, nodeId, settings }: DeliveryDeps): CommandDelivery => {
  const bounds = {
    maxSize: settings.batchSize,
    maxConcurrent: settings.batchConcurrency,
    maxWaiting: settings.batchWaiting,
    paceMs: settings.batchPaceMs,
    splitOn: canSplit,
  };
  const claim = createBatch((wants: readonly Want[]) => claimAll(wants), bounds);
  const ack = createBatch((calls: readonly AckCall[]) => ackAll(calls), { ...bounds, paceMs: settings.ackPaceMs });

  const claimAll = async (wants: readonly Want[]): Promise<readonly Claimed[]> => {
    // Of two sessions of one device in a batch only the newer claims; of two claims of one session the first gets everything.
    const newest = new Map<string, Want>();
    for (const want of wants) if (want.epoch > (newest.get(want.deviceId)?.epoch ?? -1)) newest.set(want.deviceId, want);
    const claims = await claimForSessions(db, [...newest.values()], { nodeId, timings: settings });
    return wants.map((want) => (newest.get(want.deviceId) === want ? (claims.get(want.deviceId) ?? NOTHING) : NOTHING));
  };

  const ackAll = async (calls: readonly AckCall[]): Promise<readonly AckResult[]> => {
    const perCommand = grouped(calls, keyOf);
    const refs = [...perCommand.values()].flatMap(([call]) => (call === undefined ? [] : [call]));
    const applied = await db.sqlTx(async (tx) =>
      transitions.apply(
        tx,
        await lockCommands(tx, refs),
        (row) => (perCommand.get(keyOf(row)) ?? []).map(({ event }) => event),
        ({ deviceId }) => deviceId,
      ),
    );
    afterCommit.changed(applied.transitions);
    return calls.map((call) => {
      const index = perCommand.get(keyOf(call))?.indexOf(call) ?? -1;
      const effect = applied.effects.get(call.commandId)?.[index];
      // A command id is one device's: another's call about it has found nothing.
      if (effect === undefined || effect.before.deviceId !== call.deviceId) return { commandId: call.commandId, status: null, result: "unknown" };
      const { refused } = call.event;
      return {
        commandId: call.commandId,
        status: effect.after.status,
        result: ackResult(effect.before, call.event, effect.step),
        ...(refused === null ? {} : { code: refused }),
      };
    });
  };

  const report = async (deviceId: string, commandIds: readonly string[], event: CommandEvent): Promise<void> => {
    if (commandIds.length === 0) return;
    const { transitions: made } = await db.sqlTx(async (tx) =>
      transitions.apply(
        tx,
        await lockOfDevice(tx, deviceId, commandIds),
        () => [event],
        () => "session",
      ),
    );
    afterCommit.changed(made);
  };

  return {
    claim: async (want) => {
      const { rows, left } = await claim(want);
      telemetry.claimed(want.deviceId, rows.length);
      afterCommit.changed(rows.map(sentNow));
      return { commands: rows.map(toDelivered), left };
    },
    delivered: (deviceId, epoch, commandIds) => report(deviceId, commandIds, { kind: "written", epoch }),
    refused: (deviceId, epoch, commandIds) => report(deviceId, commandIds, { kind: "refused", epoch }),
    ack: async (device, given, refused = null) =>
      ack({ tenantId: device.tenantId, deviceId: device.deviceId, commandId: given.commandId, event: toAckEvent(given, refused, settings) }),
    settle: createSettle({ transitions, afterCommit }),
  };
};

/** The code of an ack with an unknown status word. */
export const STATUS_UNKNOWN = "ACK_STATUS_UNKNOWN";
const NOTHING: Claimed = { rows: [], left: false };

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

/** The claim itself is one SQL statement; this is the transition it made. */
export const sentNow = (row: CommandRow): Transition => ({ row, from: "queued", step: { patch: { status: "sent" }, code: null } });

/** An unknown word may mean progress or an end. It proves that the agent has the command; a later word or the deadline decides the rest. */
const toAckEvent = (ack: Ack, refused: string | null, { maxOutputBytes }: CommandSettings): AckEvent => {
  const word = toAckStatus(ack.status);
  const { output, truncated } = boundOutput(ack.output, maxOutputBytes);
  const progress = ack.progress === undefined ? null : { pct: ack.progress.pct ?? null, message: ack.progress.message ?? null };
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

type Start = DeviceRef & SessionStart;
type HeldSettled = Pick<Settled, "reconcile" | "notify">;

const NONE_OPEN: OpenCount = { queued: 0, inFlight: 0 };
const nothing = (): void => undefined;

/** Most devices of a batch of hellos have nothing open and cost no statement of their own. */
const createSettle = ({ transitions, afterCommit }: Pick<DeliveryDeps, "transitions" | "afterCommit">): CommandDelivery["settle"] => {
  /** Locks the rows of all devices in one order, so that a concurrent ack waits instead of deadlocking. */
  const settleHeld = async (tx: SqlTx, starts: readonly Start[]): Promise<ReadonlyMap<string, HeldSettled>> => {
    const byDevice = new Map(starts.map((start) => [start.deviceId, { ...start, listed: listOf(start), rows: new Map<string, CommandRow>() }]));
    const locked = await lockForSettling(
      tx,
      starts,
      starts.flatMap(({ tenantId, deviceId, inFlight }) => inFlight.map(({ commandId }) => ({ tenantId, deviceId, commandId }))),
    );
    const { transitions: made } = await transitions.apply(
      tx,
      locked,
      ({ deviceId, commandId }) => {
        const start = byDevice.get(deviceId);
        if (start === undefined) return [];
        const { epoch, journal, listsAll, cancels, listed, handoff = false } = start;
        return [{ kind: "settled", epoch, listedAs: listed.get(commandId) ?? null, journal, listsAll, cancels, handoff }];
      },
      () => "session",
    );
    // The changed rows come last and so replace what was read.
    for (const row of [...locked.rows, ...made.map((transition) => transition.row)]) byDevice.get(row.deviceId)?.rows.set(row.commandId, row);
    const at = transitions.circumstances(locked.now ?? 0);
    return new Map(
      [...byDevice.values()].map(({ deviceId, listed, rows }) => [
        deviceId,
        {
          reconcile: [...listed].map(([commandId, word]) => ({ commandId, action: reconcile(rows.get(commandId) ?? null, word, at) })),
          notify: () => {
            afterCommit.changed(made.filter((transition: Transition) => transition.row.deviceId === deviceId));
            // The agent learns from `reconcile` about the commands that it lists.
            afterCommit.remind([...rows.values()].filter(({ commandId, status }) => status === "canceling" && !listed.has(commandId)));
          },
        },
      ]),
    );
  };

  return async (tx, starts) => {
    const open = await countOpenOf(tx, starts);
    const held = starts.filter(({ deviceId, inFlight }) => inFlight.length > 0 || (open.get(deviceId) ?? NONE_OPEN).inFlight > 0);
    const settled = held.length === 0 ? new Map<string, HeldSettled>() : await settleHeld(tx, held);
    const left = held.length === 0 ? open : await countOpenOf(tx, held);
    return starts.map(({ deviceId }) => {
      const found = settled.get(deviceId);
      const { queued } = (found === undefined ? open : left).get(deviceId) ?? NONE_OPEN;
      return { reconcile: [], notify: nothing, ...found, queuedCount: queued };
    });
  };
};

const listOf = ({ inFlight }: Start) => new Map(inFlight.map(({ commandId, status }) => [commandId, toAckStatus(status) ?? "unknown"] as const));

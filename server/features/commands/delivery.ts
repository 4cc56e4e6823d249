// The channel's and the poller's side of the queue: claim, written, refused, acknowledged, and what a new session finds.
import { type Ack, type AckResult, toAckStatus } from "../../../protocol/index.ts";
import type { CommandDelivery, DeviceRef, Want } from "../../core/delivery.ts";
import type { CreateBatch } from "../../platform/batch.ts";
import type { Db } from "../../platform/db.ts";
import { boundOutput } from "./payload.ts";
import { ackResult } from "./rules-ack.ts";
import type { CommandSettings } from "./settings.ts";
import { createSettle } from "./settle.ts";
import type { AckEvent, CommandEvent } from "./state.ts";
import { lockCommands, lockOfDevice } from "./store/change.ts";
import { type Claimed, claimForSessions } from "./store/claim.ts";
import { type CommandRow, canSplit, toDelivered } from "./store/rows.ts";
import type { Transition, Transitions } from "./transitions.ts";
import type { Witness } from "./witness.ts";

export interface DeliveryDeps {
  readonly db: Db;
  readonly transitions: Transitions;
  readonly witness: Pick<Witness, "claimed">;
  readonly createBatch: CreateBatch;
  readonly nodeId: string;
  readonly settings: CommandSettings;
}

interface AckCall extends DeviceRef {
  readonly commandId: string;
  readonly event: AckEvent;
}

export const createDelivery = ({ db, transitions, witness, createBatch, nodeId, settings }: DeliveryDeps): CommandDelivery => {
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
    // Two sessions of a device in one batch: the older has nothing to ask for any more. The same one twice: the first of the two gets all.
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
    transitions.tell(applied.transitions);
    return calls.map((call) => {
      const index = perCommand.get(keyOf(call))?.indexOf(call) ?? -1;
      const outcome = applied.outcomes.get(call.commandId)?.find(({ before }, at) => at === index && before.deviceId === call.deviceId);
      if (outcome === undefined) return { commandId: call.commandId, status: null, result: "unknown" };
      const { refused } = call.event;
      return {
        commandId: call.commandId,
        status: outcome.after.status,
        result: ackResult(outcome.before, call.event, outcome.step),
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
    transitions.tell(made);
  };

  return {
    claim: async (want) => {
      const { rows, left } = await claim(want);
      witness.claimed(want.deviceId, rows.length);
      transitions.tell(rows.map(sentNow));
      return { commands: rows.map(toDelivered), left };
    },
    delivered: (deviceId, epoch, commandIds) => report(deviceId, commandIds, { kind: "written", epoch }),
    refused: (deviceId, epoch, commandIds) => report(deviceId, commandIds, { kind: "refused", epoch }),
    ack: async (device, given, refused = null) =>
      ack({ tenantId: device.tenantId, deviceId: device.deviceId, commandId: given.commandId, event: toAckEvent(given, refused, settings) }),
    settle: createSettle(transitions),
  };
};

/** The code of an ack whose word is none of those that are known. */
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

/** The claim itself is SQL; this tells live views of it. */
export const sentNow = (row: CommandRow): Transition => ({ row, from: "queued", step: { patch: { status: "sent" }, code: null } });

/** An unknown word may be progress or an end: it shows that the agent has the command, and leaves the rest to what it says later or to the deadline. */
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

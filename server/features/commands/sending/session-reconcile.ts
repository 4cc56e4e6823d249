// A new session begins: the rules compare what older sessions left open with what the agent lists.
import { toAckStatus } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { CommandDelivery, DeviceRef, SessionStart, Settled } from "../../../core/ports/delivery.ts";
import { reconcile } from "../rules.ts";
import type { CommandEvent } from "../state.ts";
import { lockForSettling } from "../store/lock.ts";
import { countOpenOf, type OpenCount } from "../store/read.ts";
import type { CommandRow } from "../store/rows.ts";
import type { Transition, Transitions } from "../transitions.ts";
import type { AfterCommit } from "./after-commit.ts";
import { untold } from "./sending.ts";
import type { UnwrittenSends } from "./unwritten-sends.ts";

export interface SessionReconcileDeps {
  readonly transitions: Transitions;
  readonly afterCommit: Pick<AfterCommit, "changed" | "remind">;
  readonly unwritten: Pick<UnwrittenSends, "of" | "drop" | "find">;
}

type Start = DeviceRef & SessionStart;
type HeldSettled = Pick<Settled, "reconcile" | "notify">;

const NONE_OPEN: OpenCount = { queued: 0, inFlight: 0 };
const nothing = (): void => undefined;

/** Most devices of a batch of hellos have nothing open and cost no statement of their own. */
export const createSessionReconcile = ({ transitions, afterCommit, unwritten }: SessionReconcileDeps): CommandDelivery["settle"] => {
  /** Locks the rows of all devices in one order, so that a concurrent ack waits instead of deadlocking. */
  const settleHeld = async (tx: SqlTx, starts: readonly Start[]): Promise<ReadonlyMap<string, HeldSettled>> => {
    const byDevice = new Map(starts.map((start) => [start.deviceId, { ...start, listed: listOf(start), rows: new Map<string, CommandRow>() }]));
    const locked = await lockForSettling(
      tx,
      starts,
      starts.flatMap(({ tenantId, deviceId, inFlight }) => {
        const ids = new Set([...inFlight.map(({ commandId }) => commandId), ...unwritten.of(deviceId).map(({ queued }) => queued.commandId)]);
        return [...ids].map((commandId) => ({ tenantId, deviceId, commandId }));
      }),
    );
    const { transitions: made } = await transitions.apply(
      tx,
      locked,
      (row) => {
        const start = byDevice.get(row.deviceId);
        if (start === undefined) return [];
        const { epoch, journal, listsAll, cancels, listed, handoff = false } = start;
        const settled: CommandEvent = { kind: "settled", epoch, listedAs: listed.get(row.commandId) ?? null, journal, listsAll, cancels, handoff };
        return [...untold(row, unwritten), settled];
      },
      () => "session",
    );
    // The changed rows come last and so replace what was read.
    for (const row of [...locked.rows, ...made.map((transition) => transition.row)]) byDevice.get(row.deviceId)?.rows.set(row.commandId, row);
    const at = transitions.circumstances(locked.now ?? 0);
    return new Map(
      [...byDevice.values()].map(({ deviceId, epoch, listed, rows }) => [
        deviceId,
        {
          reconcile: [...listed].map(([commandId, word]) => ({ commandId, action: reconcile(rows.get(commandId) ?? null, word, at) })),
          notify: () => {
            for (const item of unwritten.of(deviceId)) if (item.epoch < epoch) unwritten.drop(item);
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
    const held = starts.filter(
      ({ deviceId, inFlight }) => inFlight.length > 0 || (open.get(deviceId) ?? NONE_OPEN).inFlight > 0 || unwritten.of(deviceId).length > 0,
    );
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

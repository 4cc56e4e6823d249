// What hellos find: commands that older sessions of their devices left open meet what the agents list. Most devices have none and cost no statement of their own.
import { toAckStatus } from "../../../protocol/index.ts";
import type { CommandDelivery, DeviceRef, SessionStart, Settled } from "../../core/delivery.ts";
import type { SqlTx } from "../../core/events.ts";
import { reconcile } from "./rules.ts";
import { lockForSettling } from "./store/change.ts";
import { countOpenOf, type OpenCount } from "./store/read.ts";
import type { CommandRow } from "./store/rows.ts";
import type { Transition, Transitions } from "./transitions.ts";

type Start = DeviceRef & SessionStart;
type HeldSettled = Pick<Settled, "reconcile" | "notify">;

const NONE: OpenCount = { queued: 0, inFlight: 0 };
const nothing = (): void => undefined;

export const createSettle = (transitions: Transitions): CommandDelivery["settle"] => {
  /** Rows of all devices in one order, so that acknowledgements that come at the same time wait and do not collide. */
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
    // What became of a row comes after what it was.
    for (const row of [...locked.rows, ...made.map((transition) => transition.row)]) byDevice.get(row.deviceId)?.rows.set(row.commandId, row);
    const at = transitions.circumstances(locked.now ?? 0);
    return new Map(
      [...byDevice.values()].map(({ deviceId, listed, rows }) => [
        deviceId,
        {
          reconcile: [...listed].map(([commandId, word]) => ({ commandId, action: reconcile(rows.get(commandId) ?? null, word, at) })),
          notify: () => {
            transitions.tell(made.filter((transition: Transition) => transition.row.deviceId === deviceId));
            // Those that it lists it is told of by `reconcile`.
            transitions.remind([...rows.values()].filter(({ commandId, status }) => status === "canceling" && !listed.has(commandId)));
          },
        },
      ]),
    );
  };

  return async (tx, starts) => {
    const open = await countOpenOf(tx, starts);
    const held = starts.filter(({ deviceId, inFlight }) => inFlight.length > 0 || (open.get(deviceId) ?? NONE).inFlight > 0);
    const settled = held.length === 0 ? new Map<string, HeldSettled>() : await settleHeld(tx, held);
    const left = held.length === 0 ? open : await countOpenOf(tx, held);
    return starts.map(({ deviceId }) => {
      const found = settled.get(deviceId);
      const { queued } = (found === undefined ? open : left).get(deviceId) ?? NONE;
      return { reconcile: [], notify: nothing, ...found, queuedCount: queued };
    });
  };
};

const listOf = ({ inFlight }: Start) => new Map(inFlight.map(({ commandId, status }) => [commandId, toAckStatus(status) ?? "unknown"] as const));

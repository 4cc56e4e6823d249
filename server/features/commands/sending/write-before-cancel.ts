// Before commands of a device are cancelled, the node that holds its session writes what it has sent, and from then on writes before it sends. Then a
// command that is still queued was never sent. Without an answer in time, it may have been.

import { newId } from "../../../core/ids.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import type { Bus } from "../../../platform/cluster/bus.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { SettledSession } from "../state.ts";
import { findHolder } from "../store/read.ts";
import type { UnwrittenSends } from "./unwritten-sends.ts";

export interface WriteBeforeCancelDeps {
  readonly db: Db;
  readonly unwritten: Pick<UnwrittenSends, "beCautious" | "write">;
  readonly bus: Pick<Bus, "publish" | "subscribe">;
  readonly nodeId: string;
  /** The bus channel of one node. */
  readonly channelOf: (nodeId: string) => string;
  readonly timeoutMs: number;
  readonly onError: (error: unknown) => void;
}

export interface WriteBeforeCancel {
  /** Null without an answer in time. A session that begins later is not settled. */
  settle(device: DeviceRef): Promise<SettledSession | null>;
  open(): Promise<void>;
  close(): Promise<void>;
}

/** Questions that wait for an answer; further ones count as unanswered. */
const MAX_ASKED = 1_000;

export const createWriteBeforeCancel = ({ db, unwritten, bus, nodeId, channelOf, timeoutMs, onError }: WriteBeforeCancelDeps): WriteBeforeCancel => {
  const asked = new Map<string, (settled: boolean) => void>();
  let stop: (() => Promise<void>) | null = null;

  const settleHere = async (deviceId: string): Promise<void> => {
    unwritten.beCautious(deviceId);
    await unwritten.write([deviceId]);
  };

  const ask = (holder: string, deviceId: string): Promise<boolean> =>
    new Promise((resolve) => {
      if (asked.size >= MAX_ASKED) {
        resolve(false);
        return;
      }
      const id = newId("ask");
      const answer = (settled: boolean): void => {
        clearTimeout(timer);
        asked.delete(id);
        resolve(settled);
      };
      const timer = setTimeout(() => answer(false), timeoutMs);
      asked.set(id, answer);
      bus.publish(channelOf(holder), { op: "settle", from: nodeId, deviceId, ask: id }).then(
        (sent) => {
          // Nobody listens: the node is gone, but what it sent may be under way.
          if (!sent) answer(false);
        },
        (error: unknown) => {
          onError(error);
          answer(false);
        },
      );
    });

  return {
    settle: async ({ tenantId, deviceId }) => {
      const holder = await findHolder(db, { tenantId, deviceId });
      if (holder === null) return { epoch: null };
      const { epoch } = holder;
      if (holder.nodeId !== nodeId) return (await ask(holder.nodeId, deviceId)) ? { epoch } : null;
      await settleHere(deviceId);
      return { epoch };
    },
    open: async () => {
      stop = await bus.subscribe(channelOf(nodeId), ({ op, from, deviceId, ask: id }) => {
        if (typeof id !== "string") return;
        if (op === "settled") asked.get(id)?.(true);
        if (op !== "settle" || typeof deviceId !== "string" || typeof from !== "string") return;
        settleHere(deviceId)
          .then(() => bus.publish(channelOf(from), { op: "settled", ask: id }))
          .catch(onError);
      });
    },
    close: async () => {
      await stop?.();
      for (const answer of [...asked.values()]) answer(false);
    },
  };
};

// Commands in hand: sent by the sessions of this node and not written as sent yet. Most are acknowledged first, and then one statement ends them; the rest
// is written after a moment. Only commands that may be delivered again get in here, so a node that dies with one loses nothing: it is still queued.
import type { Clock } from "../../../core/clock.ts";
import { createBoundedCache } from "../../../core/structures/bounded-cache.ts";
import type { CommandSettings } from "../settings.ts";
import type { CommandRow } from "../store/rows.ts";

export interface UnwrittenSend {
  /** As its row in the queue says. */
  readonly queued: CommandRow;
  /** As it was sent. */
  readonly sent: CommandRow;
  readonly epoch: number;
  readonly sinceMs: number;
}

export interface UnwrittenSends {
  /** Null if it is in hand already, or if its device may send nothing from memory. */
  take(queued: CommandRow, sent: CommandRow, epoch: number): UnwrittenSend | null;
  find(commandId: string): UnwrittenSend | undefined;
  of(deviceId: string): readonly UnwrittenSend[];
  /** Does nothing if the command has been taken again since. */
  drop(item: UnwrittenSend): void;
  /** Writes what is in hand for these devices; rejects if that fails. */
  write(deviceIds: readonly string[]): Promise<void>;
  /** For a while the device's commands are written before they are sent: once `write` has returned, what is queued for it was never sent. */
  beCautious(deviceId: string): void;
  isCautious(deviceId: string): boolean;
  /** Writes everything, because the node shuts down. */
  close(): Promise<void>;
}

export interface UnwrittenSendsDeps {
  readonly clock: Pick<Clock, "elapsed">;
  /** Leaves out those that were changed since, or belong to a session that was superseded. */
  readonly writeSent: (rows: readonly CommandRow[]) => Promise<unknown>;
  /** Called after a write, for the viewers of other nodes, who read what is written. */
  readonly onWritten: (rows: readonly CommandRow[]) => void;
  readonly onError: (error: unknown) => void;
  readonly settings: Pick<CommandSettings, "writeSentAfterMs" | "batchSize">;
}

const NONE: readonly UnwrittenSend[] = [];
/** Longer than any transaction takes. */
const CAUTIOUS_MS = 60_000;
const MAX_CAUTIOUS = 10_000;

export const createUnwrittenSends = ({ clock, writeSent, onWritten, onError, settings }: UnwrittenSendsDeps): UnwrittenSends => {
  const { writeSentAfterMs, batchSize } = settings;
  /** In the order in which they were sent. */
  const items = new Map<string, UnwrittenSend>();
  const byDevice = new Map<string, Set<UnwrittenSend>>();
  const cautious = createBoundedCache<true>(MAX_CAUTIOUS, { ttl: CAUTIOUS_MS });
  let timer: NodeJS.Timeout | null = null;

  const drop = (item: UnwrittenSend): void => {
    const { commandId, deviceId } = item.queued;
    if (items.get(commandId) !== item) return;
    items.delete(commandId);
    const mine = byDevice.get(deviceId);
    mine?.delete(item);
    if (mine?.size === 0) byDevice.delete(deviceId);
  };

  const write = async (some: readonly UnwrittenSend[]): Promise<void> => {
    for (let from = 0; from < some.length; from += batchSize) {
      const batch = some.slice(from, from + batchSize).filter((item) => items.get(item.queued.commandId) === item);
      if (batch.length === 0) continue;
      const rows = batch.map(({ sent }) => sent);
      await writeSent(rows);
      for (const item of batch) drop(item);
      onWritten(rows);
    }
  };

  const writeOld = async (): Promise<void> => {
    const latest = clock.elapsed() - writeSentAfterMs;
    const old: UnwrittenSend[] = [];
    for (const item of items.values()) {
      if (item.sinceMs > latest) break;
      old.push(item);
    }
    await write(old);
  };

  const schedule = (): void => {
    if (timer !== null || items.size === 0) return;
    timer = setTimeout(() => {
      void writeOld()
        .catch(onError)
        .finally(() => {
          timer = null;
          schedule();
        });
    }, writeSentAfterMs);
    timer.unref();
  };

  return {
    take: (queued, sent, epoch) => {
      if (items.has(queued.commandId) || cautious.has(queued.deviceId)) return null;
      const item = { queued, sent, epoch, sinceMs: clock.elapsed() };
      items.set(queued.commandId, item);
      const mine = byDevice.get(queued.deviceId);
      if (mine === undefined) byDevice.set(queued.deviceId, new Set([item]));
      else mine.add(item);
      schedule();
      return item;
    },
    find: (commandId) => items.get(commandId),
    of: (deviceId) => {
      const mine = byDevice.get(deviceId);
      return mine === undefined ? NONE : [...mine];
    },
    drop,
    write: (deviceIds) => write(deviceIds.flatMap((deviceId) => [...(byDevice.get(deviceId) ?? NONE)])),
    beCautious: (deviceId) => void cautious.set(deviceId, true),
    isCautious: (deviceId) => cautious.has(deviceId),
    close: async () => {
      await write([...items.values()]);
      if (timer !== null) clearTimeout(timer);
    },
  };
};

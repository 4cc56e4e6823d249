// Calls that wait: a poll until something is due for its device, a queueing call until its command has ended.
// A change on this node wakes them at once; the node that holds a device sends them the end of a command (remote-waiters.ts).
// We find every other change of another node by reading the database, on a hint or every second.
import { coalesced } from "../../../core/structures/coalesced.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { Job } from "../../../platform/jobs.ts";
import type { CommandSettings } from "../settings.ts";
import { findAwaited } from "../store/read.ts";
import type { CommandRow } from "../store/rows.ts";

/** A registered wait. Take it before you read, so that no change slips between the read and the wait. */
export interface Wait {
  /** Resolves with true when it is worth reading again, with false when the time is over, the caller gone or the node leaving. */
  next(signal: AbortSignal): Promise<boolean>;
  /** The awaited command, when it ended on this node: saves reading the row that this node has just written. Its payload is empty. */
  ended(): CommandRow | null;
  end(): void;
}

/** A device for a poll, a command for a queueing call. */
export interface WaitKey {
  readonly tenantId: string;
  readonly id: string;
}

export interface Waiters {
  /** Null when this node holds as many as it may, or is leaving: the caller answers at once. */
  take(key: WaitKey, seconds: number): Wait | null;
  /** Device ids for polls, command ids for queueing calls. */
  wake(keys: Iterable<string>): void;
  /** These commands have ended on this node. */
  ended(commands: readonly CommandRow[]): void;
  /** Ends every wait and refuses new ones, because the node shuts down. */
  close(): void;
  /** Something changed on another node: reads the database, once for all hints within a pause. */
  recheck(): void;
  /** Rechecks regularly; when jobs stop, it calls `close`. */
  readonly job: Job;
}

export interface WaitersDeps {
  readonly db: Db;
  readonly settings: Pick<CommandSettings, "maxWaits" | "waitRecheckEveryMs" | "waitRecheckPauseMs">;
  readonly onError?: ((error: unknown) => void) | undefined;
}

interface Waiter {
  woken: boolean;
  ended: CommandRow | null;
  over: boolean;
  stir: () => void;
}

export const createWaiters = ({ db, settings, onError = () => undefined }: WaitersDeps): Waiters => {
  const waiting = new Map<string, { readonly tenantId: string; readonly waiters: Set<Waiter> }>();
  let count = 0;
  let closed = false;
  let leaving: AbortSignal | null = null;

  const stir = (waiter: Waiter): void => {
    waiter.woken = true;
    waiter.stir();
  };
  const wake = (keys: Iterable<string>): void => {
    if (count > 0) for (const key of keys) waiting.get(key)?.waiters.forEach(stir);
  };
  const ended = (commands: readonly CommandRow[]): void => {
    if (count === 0) return;
    for (const command of commands)
      waiting.get(command.commandId)?.waiters.forEach((waiter) => {
        waiter.ended = command;
        stir(waiter);
      });
  };
  const recheckNow = async (): Promise<void> => {
    if (count > 0 && !closed)
      wake(
        await findAwaited(
          db,
          [...waiting].map(([id, { tenantId }]) => ({ tenantId, id })),
        ),
      );
  };
  const recheckSoon = coalesced(recheckNow, { pauseMs: settings.waitRecheckPauseMs, onError });
  const recheck = (): void => {
    if (count > 0 && !closed) recheckSoon();
  };
  const leave = (key: string, waiter: Waiter): void => {
    const at = waiting.get(key);
    if (at?.waiters.delete(waiter) !== true) return;
    count -= 1;
    if (at.waiters.size === 0) waiting.delete(key);
  };

  const close = (): void => {
    closed = true;
    for (const waiter of [...waiting.values()].flatMap(({ waiters }) => [...waiters])) {
      waiter.over = true;
      waiter.stir();
    }
  };

  return {
    wake,
    ended,
    recheck,
    close,
    take: ({ tenantId, id }, seconds) => {
      if (closed || seconds <= 0 || count >= settings.maxWaits) return null;
      const waiter: Waiter = { woken: false, ended: null, over: false, stir: () => undefined };
      const at = waiting.get(id) ?? { tenantId, waiters: new Set() };
      waiting.set(id, at);
      at.waiters.add(waiter);
      count += 1;
      const timer = setTimeout(() => {
        waiter.over = true;
        waiter.stir();
      }, seconds * 1_000);
      return {
        next: (signal) => nextStir(waiter, signal),
        ended: () => waiter.ended,
        end: () => {
          clearTimeout(timer);
          leave(id, waiter);
        },
      };
    },
    job: {
      name: "commands.waits",
      everyMs: settings.waitRecheckEveryMs,
      run: async (signal) => {
        if (leaving !== signal) signal.addEventListener("abort", close, { once: true });
        leaving = signal;
        await recheckNow();
      },
    },
  };
};

const nextStir = async (waiter: Waiter, signal: AbortSignal): Promise<boolean> => {
  if (!waiter.woken && !waiter.over && !signal.aborted)
    await new Promise<void>((resolve) => {
      const stir = (): void => {
        signal.removeEventListener("abort", stir);
        resolve();
      };
      waiter.stir = stir;
      signal.addEventListener("abort", stir, { once: true });
    });
  const again = waiter.woken && !waiter.over && !signal.aborted;
  waiter.woken = false;
  return again;
};

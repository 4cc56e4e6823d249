// Checks over REST how every accepted command ended.
import { type CommandStatus, isOpen } from "../../protocol/index.ts";
import { NoAnswer, pause, type RetryOptions } from "../agent/index.ts";
import type { Portal } from "./portal.ts";

const WORKERS = 8;
const MAX_PAGES = 1_000;
const AGAIN_MS = 1_000;

export interface Findings {
  readonly terminal: number;
  /** Accepted, but unknown to the gateway or still open at the deadline. */
  readonly lost: number;
  readonly byStatus: Readonly<Record<string, number>>;
  /** Ids of some lost commands. */
  readonly examples: readonly string[];
}

const readDevice = async (portal: Portal, deviceId: string, retry: RetryOptions): Promise<ReadonlyMap<string, CommandStatus>> => {
  const found = new Map<string, CommandStatus>();
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { items, hasMore } = await portal.list(deviceId, page, retry);
    for (const { commandId, status } of items) found.set(commandId, status);
    if (!hasMore) break;
  }
  return found;
};

/** Reads the devices' commands once, a few devices at a time. Skips a device that does not answer in time. */
const readAll = async (
  portal: Portal,
  devices: readonly string[],
  take: (found: ReadonlyMap<string, CommandStatus>) => void,
  retry: RetryOptions,
): Promise<void> => {
  const queue = [...devices];
  const work = async (): Promise<void> => {
    for (let device = queue.shift(); device !== undefined; device = queue.shift()) {
      const found = await readDevice(portal, device, retry).catch((error: unknown) => {
        if (error instanceof NoAnswer) return null;
        throw error;
      });
      if (found) take(found);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
};

/** Reads until every command has ended or the deadline passes. */
export const verifyAll = async (portal: Portal, accepted: ReadonlyMap<string, readonly string[]>, retry: RetryOptions): Promise<Findings> => {
  const statuses = new Map<string, CommandStatus>();
  const hasEnded = (commandId: string): boolean => {
    const status = statuses.get(commandId);
    return status !== undefined && !isOpen(status);
  };
  const take = (found: ReadonlyMap<string, CommandStatus>): void => {
    for (const [commandId, status] of found) statuses.set(commandId, status);
  };
  for (;;) {
    const unsettled = [...accepted].filter(([, ids]) => !ids.every(hasEnded)).map(([deviceId]) => deviceId);
    if (unsettled.length === 0) break;
    await readAll(portal, unsettled, take, retry);
    if (retry.signal?.aborted || retry.time.elapsedMs() + AGAIN_MS >= retry.untilMs) break;
    if (![...accepted.values()].every((ids) => ids.every(hasEnded))) await pause(retry.time, AGAIN_MS, retry.signal);
  }
  const ids = [...accepted.values()].flat();
  const byStatus: Record<string, number> = {};
  for (const commandId of ids) {
    const status = statuses.get(commandId) ?? "unknown";
    byStatus[status] = (byStatus[status] ?? 0) + 1;
  }
  const lost = ids.filter((commandId) => !hasEnded(commandId));
  return { terminal: ids.length - lost.length, lost: lost.length, byStatus, examples: lost.slice(0, 5) };
};

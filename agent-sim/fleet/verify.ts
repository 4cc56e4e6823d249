// Asks the gateway's REST view what became of every accepted command: only what it says there counts.
import { type CommandStatus, isOpen } from "../../protocol/index.ts";
import { NoAnswer, type Patience, pause } from "../agent/index.ts";
import type { Portal } from "./portal.ts";

const WORKERS = 8;
const MAX_PAGES = 1_000;
const AGAIN_MS = 1_000;

export interface Findings {
  readonly terminal: number;
  /** Accepted, but unknown to the gateway or not at an end in time. */
  readonly lost: number;
  readonly byStatus: Readonly<Record<string, number>>;
  /** Some of the ids that were lost, for a person to look at. */
  readonly examples: readonly string[];
}

const readDevice = async (portal: Portal, deviceId: string, patience: Patience): Promise<ReadonlyMap<string, CommandStatus>> => {
  const found = new Map<string, CommandStatus>();
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { items, hasMore } = await portal.list(deviceId, page, patience);
    for (const { commandId, status } of items) found.set(commandId, status);
    if (!hasMore) break;
  }
  return found;
};

/** One reading of the devices, a few at a time; a device that cannot be read in time stays as it was. */
const readAll = async (
  portal: Portal,
  devices: readonly string[],
  take: (found: ReadonlyMap<string, CommandStatus>) => void,
  patience: Patience,
): Promise<void> => {
  const queue = [...devices];
  const work = async (): Promise<void> => {
    for (let device = queue.shift(); device !== undefined; device = queue.shift()) {
      const found = await readDevice(portal, device, patience).catch((error: unknown) => {
        if (error instanceof NoAnswer) return null;
        throw error;
      });
      if (found) take(found);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
};

/** Reads until every command has ended or the patience is over. */
export const verifyAll = async (portal: Portal, accepted: ReadonlyMap<string, readonly string[]>, patience: Patience): Promise<Findings> => {
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
    await readAll(portal, unsettled, take, patience);
    if (patience.signal?.aborted || patience.time.elapsedMs() + AGAIN_MS >= patience.untilMs) break;
    if (![...accepted.values()].every((ids) => ids.every(hasEnded))) await pause(patience.time, AGAIN_MS, patience.signal);
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

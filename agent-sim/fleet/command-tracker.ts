// Tracks each command of this process: when it was requested, pushed, executed and confirmed, all on one monotonic clock.
import { createLatency, type Latency } from "./latency.ts";

interface Facts {
  readonly deviceId: string;
  readonly requiresAck: boolean;
  readonly sentAtMs: number;
  /** How long its payload tells the device to work: part of its time, but not of the gateway's. */
  readonly workMs?: number;
  /** Queued during the warm-up: it must end like any other, but its latencies are not counted. */
  readonly isWarmUp?: boolean;
}

export interface CommandTracker {
  accepted(commandId: string, facts: Facts): void;
  delivered(commandId: string, channel: "socket" | "poll"): void;
  executed(commandId: string): void;
  settled(commandId: string): void;
  /** The gateway has the result, but its `ack_ok` was lost, so there is no latency to measure. */
  forgotten(commandId: string): void;
  readonly counts: { readonly accepted: number; readonly pushed: number; readonly acked: number; readonly executedTwice: number; readonly open: number };
  /** Ids of the accepted commands by device. */
  byDevice(): ReadonlyMap<string, readonly string[]>;
  /** Counts deliveries over the socket only: a poll's latency depends on its interval. */
  readonly createToPush: Latency;
  /** Without the work that payloads ask for. */
  readonly createToAck: Latency;
  /** With it. */
  readonly createToAckWithWork: Latency;
}

interface Entry {
  deviceId: string | null;
  requiresAck: boolean;
  sentAtMs: number;
  workMs?: number;
  isWarmUp?: boolean;
  channel: "socket" | "poll" | null;
  deliveredAtMs: number | null;
  settledAtMs: number | null;
  executions: number;
  forgotten: boolean;
  closed: boolean;
}

export const createCommandTracker = (elapsedMs: () => number): CommandTracker => {
  const entries = new Map<string, Entry>();
  const counts = { accepted: 0, pushed: 0, acked: 0, executedTwice: 0, open: 0 };
  const createToPush = createLatency();
  const createToAck = createLatency();
  const createToAckWithWork = createLatency();

  // The push may arrive before the response to the request that queued the command, so either can create the entry.
  const entryOf = (commandId: string): Entry => {
    const known = entries.get(commandId);
    if (known) return known;
    const entry: Entry = {
      deviceId: null,
      requiresAck: true,
      sentAtMs: 0,
      channel: null,
      deliveredAtMs: null,
      settledAtMs: null,
      executions: 0,
      forgotten: false,
      closed: false,
    };
    entries.set(commandId, entry);
    return entry;
  };
  // A command without ack may be lost with a connection, so the run does not wait for it; its REST status counts.
  const close = (entry: Entry): void => {
    if (entry.closed || entry.deviceId === null || (entry.requiresAck && entry.settledAtMs === null && !entry.forgotten)) return;
    entry.closed = true;
    counts.open -= 1;
  };
  const measure = (entry: Entry, latency: Latency, atMs: number | null): void => {
    if (entry.deviceId !== null && !entry.isWarmUp && atMs !== null && entry.channel === "socket") latency.add(atMs - entry.sentAtMs);
  };
  const measureAck = (entry: Entry): void => {
    measure(entry, createToAckWithWork, entry.settledAtMs);
    if (entry.settledAtMs !== null) measure(entry, createToAck, entry.settledAtMs - (entry.workMs ?? 0));
  };
  return {
    counts,
    createToPush,
    createToAck,
    createToAckWithWork,
    accepted: (commandId, facts) => {
      const entry = entryOf(commandId);
      if (entry.deviceId !== null) return;
      Object.assign(entry, facts);
      counts.accepted += 1;
      counts.open += 1;
      measure(entry, createToPush, entry.deliveredAtMs);
      measureAck(entry);
      close(entry);
    },
    delivered: (commandId, channel) => {
      const entry = entryOf(commandId);
      if (entry.deliveredAtMs !== null) return;
      Object.assign(entry, { channel, deliveredAtMs: elapsedMs() });
      counts.pushed += 1;
      measure(entry, createToPush, entry.deliveredAtMs);
      close(entry);
    },
    executed: (commandId) => {
      const entry = entryOf(commandId);
      entry.executions += 1;
      if (entry.executions === 2) counts.executedTwice += 1;
    },
    settled: (commandId) => {
      const entry = entryOf(commandId);
      if (entry.settledAtMs !== null) return;
      entry.settledAtMs = elapsedMs();
      counts.acked += 1;
      measureAck(entry);
      close(entry);
    },
    forgotten: (commandId) => {
      const entry = entryOf(commandId);
      entry.forgotten = true;
      close(entry);
    },
    byDevice: () => {
      const devices = new Map<string, string[]>();
      for (const [commandId, { deviceId }] of entries) {
        if (deviceId === null) continue;
        const list = devices.get(deviceId);
        if (list) list.push(commandId);
        else devices.set(deviceId, [commandId]);
      }
      return devices;
    },
  };
};

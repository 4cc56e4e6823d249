// Counts what looks like an attack, in the memory of this node and within bounds, until a job writes it down.
import { factsOf, SECURITY_EVENT_TYPES, type SecurityEventType } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { INSTALLATION, type SecuritySignal, type SecurityWatch } from "../../core/ports/security.ts";

/** One row to be: what happened to one subject within one minute. */
export interface Counted {
  readonly type: SecurityEventType;
  readonly tenantId: string;
  readonly entityType: string;
  readonly entityId: string;
  readonly minute: Date;
  readonly firstAt: Date;
  lastAt: Date;
  ipAddress: string | null;
  reason: string | null;
  operation: string | null;
  total: number;
  written: number;
}

export interface CountedWatch extends SecurityWatch {
  /** What the database does not know yet. */
  due(): readonly Counted[];
  /** Forgets what is written and whose minute is over. */
  sweep(): void;
  readonly size: number;
  /** Signals that found no room. */
  readonly dropped: number;
  /** Since the start of this node, by type. */
  readonly counts: ReadonlyMap<SecurityEventType, number>;
}

const MINUTE_MS = 60_000;
const MAX_COUNTED = 10_000;
/** So that the noise of one tenant or one type leaves room for the others. */
const MAX_PER_KIND = 500;
const MAX_TEXT = 255;

const shortText = (text: string | null | undefined): string | null => (text == null ? null : text.slice(0, MAX_TEXT).replaceAll("\0", "").toWellFormed());

export const createSecurityWatch = (clock: Pick<Clock, "now">): CountedWatch => {
  const counted = new Map<string, Counted>();
  const kinds = new Map<string, number>();
  const counts = new Map<SecurityEventType, number>(SECURITY_EVENT_TYPES.map((type) => [type, 0]));
  let dropped = 0;

  const begin = (key: string, { type, tenantId, entityType, entityId }: SecuritySignal, now: Date): Counted | null => {
    const kind = `${tenantId} ${type}`;
    const ofKind = kinds.get(kind) ?? 0;
    if (counted.size >= MAX_COUNTED || ofKind >= MAX_PER_KIND) return null;
    kinds.set(kind, ofKind + 1);
    const minute = new Date(now.getTime() - (now.getTime() % MINUTE_MS));
    const subject = { type, tenantId: tenantId ?? INSTALLATION, entityType, entityId: shortText(entityId) ?? "" };
    const fresh = { ...subject, minute, firstAt: now, lastAt: now, ipAddress: null, reason: null, operation: null, total: 0, written: 0 };
    counted.set(key, fresh);
    return fresh;
  };

  return {
    note: (signal) => {
      const now = clock.now();
      const key = `${Math.floor(now.getTime() / MINUTE_MS)} ${signal.type} ${signal.tenantId} ${signal.entityType} ${signal.entityId}`;
      counts.set(signal.type, (counts.get(signal.type) ?? 0) + 1);
      const entry = counted.get(key) ?? begin(key, signal, now);
      if (entry === null) {
        dropped += 1;
        return;
      }
      entry.total += 1;
      entry.lastAt = now;
      entry.ipAddress = shortText(signal.ipAddress) ?? entry.ipAddress;
      entry.reason = shortText(signal.reason);
      entry.operation = shortText(signal.operation);
    },
    due: () => [...counted.values()].filter(({ type, total, written }) => total > written && total >= (factsOf(type).burst ?? 1)),
    sweep: () => {
      const minute = clock.now().getTime() - (clock.now().getTime() % MINUTE_MS);
      for (const [key, entry] of counted) {
        const isWritten = entry.written === entry.total || entry.total < (factsOf(entry.type).burst ?? 1);
        if (!isWritten || entry.minute.getTime() >= minute) continue;
        counted.delete(key);
        const kind = `${entry.tenantId === INSTALLATION ? null : entry.tenantId} ${entry.type}`;
        const left = (kinds.get(kind) ?? 1) - 1;
        if (left === 0) kinds.delete(kind);
        else kinds.set(kind, left);
      }
    },
    get size() {
      return counted.size;
    },
    get dropped() {
      return dropped;
    },
    counts,
  };
};

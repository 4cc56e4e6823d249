// Decides which new commands enter the queue: pure, over facts that the store read under the device's lock.
import type { CommandId, DeviceId, ErrorCode } from "../../../protocol/index.ts";
import type { AppErrorOptions } from "../../core/errors.ts";
import type { SystemScope } from "../../core/scope.ts";
import { created } from "./rules.ts";
import type { Instant } from "./state.ts";
import type { CommandRow } from "./store/rows.ts";

/** One command per device and key; a repeat must carry the same request. */
export interface CommandKey {
  /** `<principal>:<key>` */
  readonly key: string;
  readonly requestHash: Buffer;
}

export interface NewCommand {
  readonly scope: SystemScope;
  readonly commandId: CommandId;
  readonly deviceId: DeviceId;
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly requiresAck: boolean;
  readonly lane: string;
  readonly priority: number;
  /** Explicit end; null: never; undefined: by ttlSeconds. */
  readonly expiresAt: Instant | null | undefined;
  readonly ttlSeconds: number;
  readonly notBefore: Instant | null;
  readonly execTimeoutSeconds: number;
  readonly maxAttempts: number;
  readonly redeliverSafe: boolean;
  readonly onlyOnline: boolean;
  /** False: it enters even a full queue. */
  readonly bounded: boolean;
  readonly idempotency: CommandKey | null;
  readonly createdBy: string;
  readonly traceparent: string | null;
}

export interface QueueLimits {
  readonly maxOpenPerDevice: number;
  readonly maxOpenPerTenant: number | null;
  readonly maxTtlSeconds: number;
}

export interface DeviceFacts {
  readonly tenantId: string;
  readonly isOnline: boolean;
  /** The node that has its socket. */
  readonly heldBy: string | null;
  /** The epoch of that socket's session; null without one. */
  readonly liveEpoch: number | null;
  readonly nextSeq: number;
  readonly open: number;
}

export interface Created {
  readonly kind: "created";
  readonly item: NewCommand;
  readonly row: CommandRow;
  readonly heldBy: string | null;
  /** The device had no other open command: nothing stands before this one. */
  readonly isAlone: boolean;
}

export type Admission =
  | Created
  | { readonly kind: "replayed"; readonly row: CommandRow }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly options: AppErrorOptions };

export interface AdmissionFacts {
  readonly devices: ReadonlyMap<string, DeviceFacts>;
  /** Commands that exist under `<deviceId> <idempotencyKey>`. */
  readonly existing: ReadonlyMap<string, { readonly row: CommandRow; readonly requestHash: Buffer }>;
  readonly openOfTenant: ReadonlyMap<string, number>;
  readonly limits: QueueLimits;
  /** This node, for the history. */
  readonly nodeId: string;
  readonly now: Instant;
}

export const admit = (items: readonly NewCommand[], facts: AdmissionFacts): readonly Admission[] => {
  const known = new Map(facts.existing);
  const admittedOn = new Map<string, number>();
  const admittedFor = new Map<string, number>();
  return items.map((item) => {
    const device = facts.devices.get(item.deviceId);
    if (device === undefined || device.tenantId !== item.scope.tenantId) return refused("DEVICE_NOT_FOUND", { details: { deviceId: item.deviceId } });
    const { idempotency } = item;
    const key = idempotency === null ? null : `${item.deviceId} ${idempotency.key}`;
    const earlier = key === null ? undefined : known.get(key);
    // Before every other check: a repeat gets its answer even if the queue has filled up or the device has gone offline since.
    if (earlier !== undefined && idempotency !== null)
      return earlier.requestHash.equals(idempotency.requestHash) ? { kind: "replayed", row: asCreated(earlier.row, item) } : refused("IDEMPOTENCY_KEY_REUSED");

    const onDevice = admittedOn.get(item.deviceId) ?? 0;
    const forTenant = admittedFor.get(item.scope.tenantId) ?? 0;
    const times = windowOf(item, facts);
    const reason = refusal(
      item,
      { ...facts, device, open: device.open + onDevice, openOfTenant: (facts.openOfTenant.get(item.scope.tenantId) ?? 0) + forTenant },
      times,
    );
    if (reason !== null) return reason;
    const { liveEpoch, heldBy } = device;
    const queued = { at: facts.now, to: "queued", by: item.createdBy, node: facts.nodeId } as const;
    const row = newRow(item, { tenantId: item.scope.tenantId, seq: device.nextSeq + onDevice, issuedAt: facts.now, liveEpoch, history: [queued], ...times });
    admittedOn.set(item.deviceId, onDevice + 1);
    admittedFor.set(item.scope.tenantId, forTenant + 1);
    if (key !== null && idempotency !== null) known.set(key, { row, requestHash: idempotency.requestHash });
    return { kind: "created", item, row, heldBy, isAlone: device.open + onDevice === 0 };
  });
};

interface TimeWindow {
  readonly availableAt: Instant;
  readonly expiresAt: Instant | null;
}

// The default time to live starts when delivery may start, so a command for tomorrow does not expire tonight.
const windowOf = (item: NewCommand, { now }: Pick<AdmissionFacts, "now">): TimeWindow => {
  const availableAt = Math.max(now, item.notBefore ?? now);
  return { availableAt, expiresAt: item.expiresAt === undefined ? availableAt + item.ttlSeconds * 1_000 : item.expiresAt };
};

const refusal = (
  item: NewCommand,
  facts: { readonly device: DeviceFacts; readonly open: number; readonly openOfTenant: number; readonly limits: QueueLimits; readonly now: Instant },
  { availableAt, expiresAt }: TimeWindow,
): Admission | null => {
  const { limits, now } = facts;
  const latest = now + limits.maxTtlSeconds * 1_000;
  if (availableAt > latest) return invalid("notBefore", "too far ahead");
  if (expiresAt !== null && item.expiresAt !== undefined && expiresAt > latest) return invalid("expiresAt", "too far ahead");
  if (expiresAt !== null && expiresAt <= availableAt) return invalid("expiresAt", item.notBefore === null ? "in the past" : "not after notBefore");
  if (item.onlyOnline && !facts.device.isOnline) return refused("DEVICE_OFFLINE", { details: { deviceId: item.deviceId } });
  if (!item.bounded) return null;
  if (facts.open >= limits.maxOpenPerDevice) return full(item, "device", limits.maxOpenPerDevice);
  if (limits.maxOpenPerTenant !== null && facts.openOfTenant >= limits.maxOpenPerTenant) return full(item, "tenant", limits.maxOpenPerTenant);
  return null;
};

const refused = (code: ErrorCode, options: AppErrorOptions = {}): Admission => ({ kind: "refused", code, options });
const invalid = (path: string, message: string): Admission => refused("VALIDATION_FAILED", { details: { issues: [{ path, code: "custom", message }] } });
const full = ({ deviceId }: NewCommand, scope: "device" | "tenant", limit: number): Admission =>
  refused("COMMAND_QUEUE_FULL", { retryAfter: 30, details: { deviceId, scope, limit } });

/** The fields of a command that never change. */
type Made = Pick<
  CommandRow,
  | "commandId"
  | "deviceId"
  | "lane"
  | "priority"
  | "type"
  | "payload"
  | "requiresAck"
  | "maxAttempts"
  | "redeliverSafe"
  | "execTimeoutSeconds"
  | "traceparent"
  | "createdBy"
>;
type Placed = TimeWindow & Pick<CommandRow, "tenantId" | "seq" | "issuedAt" | "liveEpoch" | "history">;

// One literal in the order of `toRow` gives all rows one hidden class.
const newRow = (made: Made, { tenantId, seq, issuedAt, availableAt, expiresAt, liveEpoch, history }: Placed): CommandRow => {
  const { status, deadlineAt, attempt } = created(availableAt, expiresAt);
  return {
    commandId: made.commandId,
    tenantId,
    deviceId: made.deviceId,
    seq,
    lane: made.lane,
    priority: made.priority,
    type: made.type,
    payload: made.payload,
    requiresAck: made.requiresAck,
    issuedAt,
    status,
    deadlineAt,
    availableAt,
    expiresAt,
    attempt,
    maxAttempts: made.maxAttempts,
    redeliverSafe: made.redeliverSafe,
    execTimeoutSeconds: made.execTimeoutSeconds,
    execDeadlineAt: null,
    channel: null,
    sessionEpoch: null,
    nodeId: null,
    sentAt: null,
    ackedAt: null,
    startedAt: null,
    finishedAt: null,
    ackStatus: null,
    ackAt: null,
    output: null,
    outputTruncated: false,
    progress: null,
    failureCode: null,
    cancelRequestedAt: null,
    cancelReason: null,
    cancelPrevStatus: null,
    late: false,
    lateOutcome: null,
    traceparent: made.traceparent,
    createdBy: made.createdBy,
    liveEpoch,
    history,
    revision: 0,
  };
};

/** Repeats the first answer, whatever has become of the command. */
const asCreated = (row: CommandRow, { notBefore }: NewCommand): CommandRow =>
  newRow(row, { ...row, availableAt: Math.max(row.issuedAt, notBefore ?? row.issuedAt) });

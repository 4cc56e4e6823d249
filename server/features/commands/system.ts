// Commands of the gateway itself, which no caller may queue. They pass the bounds of the queue: a full queue must not keep a rotation from its device.
import { createHash } from "node:crypto";
import { contract, type DeviceId, type TenantId } from "../../../protocol/index.ts";
import type { Courier } from "../../core/delivery.ts";
import type { Hint } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import type { Db } from "../../platform/db.ts";
import type { NewCommand } from "./admission.ts";
import type { CommandSettings } from "./settings.ts";
import { createCommandRows } from "./store/create.ts";
import { eventOf } from "./transitions.ts";
import { SYSTEM_TYPES, type SystemType } from "./types.ts";

export interface SystemDeps {
  readonly db: Db;
  readonly hint: Hint;
  readonly courier: Courier;
  readonly nodeId: string;
  readonly settings: CommandSettings;
}

/** The same key makes one command, however often it is asked for. */
export interface SystemCommand {
  readonly type: SystemType;
  readonly key: string;
}

export type QueueSystem = (device: { readonly tenantId: TenantId; readonly deviceId: DeviceId }, command: SystemCommand) => Promise<void>;

export const createSystemQueue =
  ({ db, hint, courier, nodeId, settings }: SystemDeps): QueueSystem =>
  async (device, command) => {
    const limits = { maxOpenPerDevice: Infinity, maxOpenPerTenant: null, maxTtlSeconds: settings.maxTtlSeconds };
    const [admission] = await createCommandRows(db, [toNewCommand(device, command)], { limits, nodeId });
    if (admission?.kind !== "created") return;
    hint(eventOf(contract.commands.events.queued, admission.row, null));
    courier.nudge([device.deviceId]);
  };

const toNewCommand = ({ tenantId, deviceId }: Parameters<QueueSystem>[0], { type, key }: SystemCommand): NewCommand => {
  const known = SYSTEM_TYPES[type];
  const commandId = newId("cmd");
  return {
    scope: { tenantId },
    commandId,
    deviceId,
    type,
    payload: {},
    requiresAck: true,
    lane: type,
    priority: 9,
    expiresAt: undefined,
    ttlSeconds: known.ttlSeconds,
    notBefore: null,
    execTimeoutSeconds: known.executionTimeoutSeconds,
    maxAttempts: 100,
    redeliverSafe: known.redeliverSafe,
    onlyOnline: false,
    idempotencyKey: `system:${key}`,
    requestHash: createHash("sha256").update(`${type} ${key}`).digest(),
    createdBy: "system",
    traceparent: null,
  };
};

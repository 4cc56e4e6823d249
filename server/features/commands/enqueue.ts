// Commands that other rooms order inside their own transactions: the order and its cause are committed together or not at all.
import { contract } from "../../../protocol/index.ts";
import type { CommandOrder, DeviceNotifier, Enqueue } from "../../core/delivery.ts";
import { AppError } from "../../core/errors.ts";
import type { Hint } from "../../core/events.ts";
import { fingerprint } from "../../core/fingerprint.ts";
import { newId } from "../../core/ids.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Admission, NewCommand } from "./admission.ts";
import type { Headroom } from "./headroom.ts";
import { isDeeperThan, jsonBytes } from "./payload.ts";
import type { CommandSettings } from "./settings.ts";
import { admitCommands, insertCommands } from "./store/create.ts";
import { commandHappened } from "./transitions.ts";
import { type CommandType, commandType, laneOf, systemType } from "./types.ts";
import type { Witness } from "./witness.ts";

export interface EnqueueDeps {
  readonly hint: Hint;
  readonly courier: DeviceNotifier;
  readonly nodeId: string;
  readonly headroom: Headroom;
  readonly witness: Pick<Witness, "created">;
  readonly settings: CommandSettings;
}

type Refused = Extract<Admission, { kind: "refused" }>;
const isRefused = (admission: Admission): admission is Refused => admission.kind === "refused";

const ORDINARY = { priority: 5, maxAttempts: 10, bounded: true } as const;
// A full queue must not keep a rotation from its device, and nothing of the gateway's own is given up early.
const OWN = { priority: 9, maxAttempts: 100, bounded: false } as const;

export const createEnqueue =
  ({ hint, courier, nodeId, headroom, witness, settings }: EnqueueDeps): Enqueue =>
  async (tx, scope, orders) => {
    const admissions = await admitCommands(
      tx,
      orders.map((order) => toNewCommand(scope, order, settings)),
      { limits: settings, headroom },
    );
    const refused = admissions.find(isRefused);
    // Before anything is written: whoever catches this and commits all the same has ordered nothing.
    if (refused !== undefined) throw new AppError(refused.code, refused.options);
    await insertCommands(tx, admissions, nodeId);
    const made = admissions.flatMap((admission) => (admission.kind === "created" ? [admission.row] : []));
    return {
      commandIds: admissions.flatMap((admission) => (isRefused(admission) ? [] : [admission.row.commandId])),
      notify: () => {
        for (const row of made) {
          witness.created(row);
          hint(commandHappened(contract.commands.events.queued, row, null));
        }
        if (made.length > 0) courier.nudge([...new Set(made.map(({ deviceId }) => deviceId))]);
      },
    };
  };

const checked = ({ type, payload = {} }: CommandOrder, known: CommandType, { maxPayloadBytes, maxPayloadDepth }: CommandSettings): NewCommand["payload"] => {
  const fits = !isDeeperThan(payload, maxPayloadDepth) && jsonBytes(payload) <= maxPayloadBytes && known.payload.safeParse(payload).success;
  if (!fits) throw new AppError("COMMAND_PAYLOAD_INVALID", { details: { type, maxBytes: maxPayloadBytes, maxDepth: maxPayloadDepth } });
  return payload;
};

const toNewCommand = (scope: SystemScope, order: CommandOrder, settings: CommandSettings): NewCommand => {
  const { deviceId, type, key, orderedBy } = order;
  const own = systemType(type);
  const known = own ?? commandType(type);
  if (known === null) throw new AppError("COMMAND_TYPE_UNKNOWN", { details: { type } });
  const payload = checked(order, known, settings);
  const commandId = newId("cmd");
  return {
    ...(own === null ? ORDINARY : OWN),
    scope,
    commandId,
    deviceId,
    type,
    payload,
    requiresAck: true,
    lane: own === null ? laneOf(commandId, payload, known) : type,
    expiresAt: undefined,
    ttlSeconds: known.ttlSeconds,
    notBefore: null,
    execTimeoutSeconds: known.executionTimeoutSeconds,
    redeliverSafe: known.redeliverSafe,
    onlyOnline: false,
    // No caller's key begins so: those name their principal.
    idempotency: { key: `system:${key}`, requestHash: fingerprint({ type, payload }) },
    createdBy: orderedBy,
    traceparent: scope.traceparent ?? null,
  };
};

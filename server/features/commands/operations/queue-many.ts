// Queues one command for each of many devices: one request, one transaction, and for each device its own command or error.
import type { z } from "zod";
import { type CommandResult, type contract, type Details, type DeviceId, type ErrorCode, isRetryable } from "../../../../protocol/index.ts";
import { isLimited } from "../../../core/access.ts";
import { AppError, type AppErrorOptions } from "../../../core/errors.ts";
import type { Call, Handlers } from "../../../core/feature.ts";
import type { DeviceLookup } from "../../../core/ports/lookups.ts";
import { jsonBytes } from "../../../core/rows/json-bounds.ts";
import type { TenantScope } from "../../../core/scope.ts";
import type { CreateBatch } from "../../../platform/database/batch.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { Admission, NewCommand } from "../admission.ts";
import type { QueueQuota } from "../queue-quota.ts";
import { toCommand } from "../records.ts";
import type { AfterCommit } from "../sending/after-commit.ts";
import type { CommandSettings } from "../settings.ts";
import { createCommandRows } from "../store/create.ts";
import { prepareCommands } from "./queue.ts";

type Operation = typeof contract.commands.operations.queueMany;
type Input = z.output<Operation["input"]>;

const MAX_DEVICES = 1_000;
/** Each command has its own copy of the payload, in one transaction and in one answer. */
const MAX_PAYLOADS_BYTES = 4_194_304;
/**
 * Each transaction holds its devices and a connection for as long as a thousand rows take. Single commands have a batch of their own, so they wait
 * for these only at a device that both concern.
 */
const BOUNDS = { work: "writes", maxSize: 1, maxConcurrent: 2, maxWaiting: 64 } as const;

export interface QueueManyDeps {
  readonly db: Db;
  readonly devices: Pick<DeviceLookup, "visible" | "matching">;
  readonly afterCommit: Pick<AfterCommit, "created">;
  readonly createBatch: CreateBatch;
  readonly nodeId: string;
  readonly quota: QueueQuota;
  readonly settings: CommandSettings;
}

export const createQueueManyOperation = (deps: QueueManyDeps): Pick<Handlers<typeof contract.commands>, "queueMany"> => {
  const { db, devices, afterCommit, createBatch, nodeId, quota, settings } = deps;
  const facts = { limits: settings, quota, nodeId };
  const create = createBatch(
    (requests: readonly (readonly NewCommand[])[]) => Promise.all(requests.map((items) => createCommandRows(db, items, facts))),
    BOUNDS,
  );
  return {
    queueMany: async (call, { deviceIds, selector, ...order }) => {
      const { scope, reply } = call;
      const commandFor = prepareCommands(call, order, settings);
      const named = deviceIds === undefined ? await select(devices, scope, selector) : [...new Set(deviceIds)];
      checkPayloads(call, order, named.length);
      const known = isLimited(scope) && deviceIds !== undefined ? await devices.visible(scope, named) : null;
      const items = named.filter((deviceId) => known === null || known.has(deviceId)).map(commandFor);
      const admissions = items.length === 0 ? [] : await create(items);
      const made = admissions.flatMap((admission) => (admission.kind === "created" ? [admission] : []));
      afterCommit.created(made);
      const replayed = admissions.filter(({ kind }) => kind === "replayed").length;
      if (replayed > 0 && made.length === 0) reply.replayed = true;
      const results = new Map(items.map(({ deviceId }, index) => [deviceId, admissions[index]]));
      return {
        items: named.map((deviceId) => toResult(deviceId, results.get(deviceId))),
        counts: { created: made.length, replayed, refused: named.length - made.length - replayed },
      };
    },
  };
};

const select = async ({ matching }: QueueManyDeps["devices"], scope: TenantScope, selector: Input["selector"]): Promise<readonly DeviceId[]> => {
  if (selector === undefined) return [];
  const { deviceIds, count } = await matching(scope, selector, MAX_DEVICES);
  if (count <= MAX_DEVICES) return deviceIds;
  const message = `${count} devices match, and one call takes at most ${MAX_DEVICES}; narrow the selector, or send the ids of the devices in several calls`;
  throw new AppError("VALIDATION_FAILED", {
    details: { reason: "too_many_matches", matches: count, issues: [{ path: "selector", code: "custom", message }] },
  });
};

const checkPayloads = ({ fail }: Call<Operation>, { type, payload }: Pick<Input, "type" | "payload">, devices: number): void => {
  const bytes = jsonBytes(payload);
  if (bytes * devices <= MAX_PAYLOADS_BYTES) return;
  const maxDevices = Math.floor(MAX_PAYLOADS_BYTES / bytes);
  throw fail("COMMAND_PAYLOAD_INVALID", { type, reason: "too_large_for_devices", bytes, devices, maxDevices, maxBytes: MAX_PAYLOADS_BYTES });
};

const toResult = (deviceId: DeviceId, admission: Admission | undefined): CommandResult => {
  if (admission === undefined) return refused(deviceId, "DEVICE_NOT_FOUND", { details: { deviceId } });
  if (admission.kind === "refused") return refused(deviceId, admission.code, admission.options);
  return { deviceId, command: toCommand(admission.row), error: null };
};

const refused = (deviceId: DeviceId, code: ErrorCode, options: AppErrorOptions): CommandResult => {
  const { message, retryAfter, details = {} satisfies Details } = new AppError(code, options);
  return { deviceId, command: null, error: { code, message, retryable: isRetryable(code), ...(retryAfter === undefined ? {} : { retryAfter }), details } };
};

// Reading commands: lists, one, and its timeline with what it waits for.
import { type contract, toWindow } from "../../../../protocol/index.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { TenantScope } from "../../../core/scope.ts";
import type { Db } from "../../../platform/db.ts";
import { blockedBy } from "../blocked-by.ts";
import type { DeviceLookup } from "../index.ts";
import { findCommand, listCommands, readSurroundings, readTimeline } from "../store/read.ts";
import { toCommand } from "../store/rows.ts";

export interface ReadDeps {
  readonly db: Db;
  readonly devices: DeviceLookup;
}

export const reading = ({ db, devices }: ReadDeps): Pick<Handlers<typeof contract.commands>, "list" | "get" | "getOnDevice" | "timeline"> => ({
  list: async ({ scope, fail }, input) => {
    const { deviceId } = input;
    if ((await devices.find(scope, deviceId)) === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
    const { rows, total } = await listCommands(db, scope, { deviceId, status: input.status ?? null, type: input.type ?? null }, toWindow(input));
    return { items: rows.map(toCommand), total };
  },
  get: async ({ scope, fail }, { commandId }) => {
    const row = await findCommand(db, scope, commandId, ownDevice(scope));
    if (row === null) throw fail("COMMAND_NOT_FOUND", { commandId });
    return toCommand(row);
  },
  getOnDevice: async ({ scope, fail }, { deviceId, commandId }) => {
    const row = await findCommand(db, scope, commandId, deviceId);
    if (row !== null) return toCommand(row);
    if ((await devices.find(scope, deviceId)) === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
    throw fail("COMMAND_NOT_FOUND", { commandId });
  },
  timeline: async ({ scope, fail }, { commandId, deviceId }) => {
    const row = await findCommand(db, scope, commandId, deviceId ?? null);
    if (row === null) throw fail("COMMAND_NOT_FOUND", { commandId });
    const [events, around] = await Promise.all([readTimeline(db, scope, commandId), readSurroundings(db, row)]);
    return { commandId: row.commandId, status: row.status, traceparent: row.traceparent, events: [...events], blockedBy: blockedBy(row, around) };
  },
});

/** An agent reads its own device's commands only; people read the tenant's. */
const ownDevice = ({ principal }: TenantScope): string | null => (principal.kind === "agent" ? principal.deviceId : null);

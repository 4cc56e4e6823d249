// Reads commands: lists, counts, types, one command, and its timeline with the reason why it waits.
import { type CommandSummary, type contract, type Page, type PageQuery, toWindow } from "../../../../protocol/index.ts";
import { isLimited } from "../../../core/access.ts";
import type { Clock } from "../../../core/clock.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import { findActors } from "../../../core/people/actors.ts";
import type { DeviceLookup } from "../../../core/ports/lookups.ts";
import { bindingOf, readCursor, writeCursor } from "../../../core/rows/cursor.ts";
import { findEventVersion } from "../../../core/rows/event-version.ts";
import { partOf } from "../../../core/rows/records.ts";
import { refuseTooFar } from "../../../core/rows/walk.ts";
import type { TenantScope } from "../../../core/scope.ts";
import type { Db } from "../../../platform/database/db.ts";
import { blockedBy } from "../blocked-by.ts";
import { COMMAND_TYPES } from "../command-types.ts";
import { toCommand } from "../records.ts";
import {
  countCommands,
  getCommands,
  listAllCommands,
  listCommands,
  type NamedRow,
  summarizeCommands,
  type TenantCommandFilter,
  type Walked,
} from "../store/list.ts";
import { findCommand, readSurroundings } from "../store/read.ts";
import type { CommandRow } from "../store/rows.ts";
import { readTimeline } from "../store/timeline.ts";

export interface ReadDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly devices: DeviceLookup;
}

/** A command of a device that the caller does not see is unknown. */
export const findVisibleCommand = async (
  tx: SqlTx,
  scope: TenantScope,
  named: { readonly commandId: string; readonly deviceId?: string | null | undefined },
  devices: Pick<DeviceLookup, "isVisible">,
): Promise<CommandRow | null> => {
  const row = await findCommand(tx, scope, named.commandId, named.deviceId ?? null);
  return row !== null && isLimited(scope) && !(await devices.isVisible(scope, row.deviceId)) ? null : row;
};

type Names = "list" | "listAll" | "listPartial" | "getMany" | "summary" | "types" | "get" | "getOnDevice" | "timeline";
type Read<N extends Names> = Pick<Handlers<typeof contract.commands>, N>;

export const createReadOperations = (deps: ReadDeps): Read<Names> => ({ ...lists(deps), ...single(deps) });

/** The page of so many rows, of which one more was read. */
const pageOf = <R, T, K extends string | number>(
  { rows, reached }: Walked<R, K>,
  limit: number,
  { record, key, binding }: { readonly record: (row: R) => T; readonly key: (last: R) => K; readonly binding: string },
): Page<T> => {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const end = rows.length > limit && last !== undefined ? key(last) : reached;
  return { items: shown.map(record), ...(end === null ? {} : { nextCursor: writeCursor(binding, [end]) }) };
};

/** Without payload and output, with the names of its device and its creator. */
const summaries = async (db: Db, scope: TenantScope, rows: readonly NamedRow[]): Promise<(row: NamedRow) => CommandSummary> => {
  const actorOf = await findActors(
    db,
    scope,
    rows.map(({ row }) => row.createdBy),
  );
  return ({ row, deviceName }) => {
    const { payload: _, ack: __, ...command } = toCommand(row);
    return { ...command, deviceName, actor: actorOf(row.createdBy) };
  };
};

const listOfTenant = async (db: Db, scope: TenantScope, input: TenantCommandFilter & PageQuery): Promise<Page<CommandSummary>> => {
  const binding = bindingOf("all-commands", scope.tenantId, input);
  const { limit } = toWindow(input);
  const isOfDevice = input.deviceId !== undefined;
  const [after = null] = (readCursor(input.cursor, binding, [{ kind: isOfDevice ? "number" : "text" }]) ?? []) as (string | number)[]; // as: of this kind
  const found = await listAllCommands(db, scope, input, { after, limit: limit + 1 });
  const record = await summaries(db, scope, found.rows);
  return pageOf(found, limit, { record, key: ({ row }) => (isOfDevice ? row.seq : row.commandId), binding });
};

const lists = ({ db, clock, devices }: ReadDeps): Read<"list" | "listAll" | "listPartial" | "getMany" | "summary" | "types"> => ({
  list: async ({ scope, fail }, input) => {
    const { deviceId } = input;
    if ((await devices.find(scope, deviceId)) === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
    const binding = bindingOf("commands", scope.tenantId, input);
    const { limit, offset } = toWindow(input);
    const [beforeSeq = null] = (readCursor(input.cursor, binding, [{ kind: "number" }]) ?? []) as number[]; // as: of this kind
    const [found, total] = await Promise.all([
      listCommands(db, scope, input, { limit: limit + 1, offset, beforeSeq }),
      input.cursor === undefined ? countCommands(db, scope, input) : null,
    ]);
    if (found.reached !== null) refuseTooFar(offset);
    return { ...pageOf(found, limit, { record: toCommand, key: ({ seq }) => seq, binding }), ...(total === null ? {} : { total }) };
  },
  listAll: ({ scope }, input) => listOfTenant(db, scope, input),
  listPartial: async ({ scope }, { fields, ...input }) => {
    const { items, ...page } = await listOfTenant(db, scope, input);
    return { items: items.map((command) => partOf(command, "commandId", fields)), ...page };
  },
  getMany: async ({ scope }, { ids }) => {
    const rows = await getCommands(db, scope, ids);
    return { items: rows.map(await summaries(db, scope, rows)) };
  },
  summary: async ({ scope }) => {
    const version = await findEventVersion(db, scope);
    return { ...(await summarizeCommands(db, scope, clock.now())), version };
  },
  types: async () => ({ items: [...COMMAND_TYPES] }),
});

const single = ({ db, devices }: ReadDeps): Read<"get" | "getOnDevice" | "timeline"> => ({
  get: async ({ scope, fail }, { commandId }) => {
    const row = await findVisibleCommand(db, scope, { commandId, deviceId: ownDevice(scope) }, devices);
    if (row === null) throw fail("COMMAND_NOT_FOUND", { commandId });
    return toCommand(row);
  },
  getOnDevice: async ({ scope, fail }, { deviceId, commandId }) => {
    const row = await findVisibleCommand(db, scope, { commandId, deviceId }, devices);
    if (row !== null) return toCommand(row);
    if ((await devices.find(scope, deviceId)) === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
    throw fail("COMMAND_NOT_FOUND", { commandId });
  },
  timeline: async ({ scope, fail }, { commandId, deviceId }) => {
    const row = await findVisibleCommand(db, scope, { commandId, deviceId }, devices);
    if (row === null) throw fail("COMMAND_NOT_FOUND", { commandId });
    const [events, around, [named]] = await Promise.all([readTimeline(db, scope, commandId), readSurroundings(db, row), getCommands(db, scope, [commandId])]);
    const actorOf = await findActors(db, scope, [row.createdBy, ...events.map(({ actor }) => actor)]);
    return {
      commandId: row.commandId,
      status: row.status,
      command: { ...toCommand(row), deviceName: named?.deviceName ?? null, actor: actorOf(row.createdBy) },
      traceparent: row.traceparent,
      events: events.map((event) => ({ ...event, by: actorOf(event.actor) })),
      blockedBy: blockedBy(row, around),
    };
  },
});

/** An agent reads its own device's commands only; people read the tenant's. */
const ownDevice = ({ principal }: TenantScope): string | null => (principal.kind === "agent" ? principal.deviceId : null);

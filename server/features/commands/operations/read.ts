// Reads commands: a list, one command, and its timeline with the reason why it waits.
import type { z } from "zod";
import { type BlockedBy, type contract, isOpen, toWindow } from "../../../../protocol/index.ts";
import { isLimited } from "../../../core/access.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { DeviceLookup } from "../../../core/lookups.ts";
import type { TenantScope } from "../../../core/scope.ts";
import type { Db } from "../../../platform/db.ts";
import { findCommand, listCommands, readSurroundings, type Surroundings } from "../store/read.ts";
import { type CommandRow, isoTime, toCommand } from "../store/rows.ts";
import { readTimeline } from "../store/timeline.ts";

export interface ReadDeps {
  readonly db: Db;
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

export const reading = ({ db, devices }: ReadDeps): Pick<Handlers<typeof contract.commands>, "list" | "get" | "getOnDevice" | "timeline"> => ({
  list: async ({ scope, fail }, input) => {
    const { deviceId } = input;
    if ((await devices.find(scope, deviceId)) === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
    const { rows, total } = await listCommands(db, scope, { deviceId, status: input.status ?? null, type: input.type ?? null }, toWindow(input));
    return { items: rows.map(toCommand), total };
  },
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
    const [events, around] = await Promise.all([readTimeline(db, scope, commandId), readSurroundings(db, row)]);
    return { commandId: row.commandId, status: row.status, traceparent: row.traceparent, events: [...events], blockedBy: blockedBy(row, around) };
  },
});

/** An agent reads its own device's commands only; people read the tenant's. */
const ownDevice = ({ principal }: TenantScope): string | null => (principal.kind === "agent" ? principal.deviceId : null);

type Blocked = z.infer<typeof BlockedBy>;

/** Says in one line what a command waits for, and since when. */
const blockedBy = (row: CommandRow, around: Surroundings): Blocked => {
  if (!isOpen(row.status))
    return { kind: "none", since: null, explanation: `It has ended as ${row.status}${row.failureCode === null ? "" : ` (${row.failureCode})`}.` };
  if (row.status !== "queued") return waitsForAgent(row, around);
  const now = around.now.getTime();
  if (row.availableAt > now) {
    const why = row.attempt > 0 ? `Attempt ${row.attempt} was not acknowledged; it is delivered again` : "It is held back";
    return { kind: "window", since: isoTime(row.issuedAt), explanation: `${why} from ${isoTime(row.availableAt)}.` };
  }
  if (around.connectivity === "none") {
    const since = around.lastSeenAt?.toISOString() ?? null;
    return {
      kind: "offline",
      since: since ?? isoTime(row.issuedAt),
      explanation: since === null ? "The device has never been connected." : `The device is not connected; it was last seen at ${since}.`,
    };
  }
  if (around.ahead !== null) {
    const { commandId, status, since } = around.ahead;
    return {
      kind: "lane",
      commandId,
      since: since.toISOString(),
      explanation: `Lane ${row.lane} is taken by ${commandId}, ${status} since ${since.toISOString()}.`,
    };
  }
  if (around.connectivity === "realtime" && around.maxInFlight !== null && around.inFlight >= around.maxInFlight)
    return { kind: "credit", since: isoTime(row.availableAt), explanation: `The agent is at work on ${around.inFlight} commands and takes no more at once.` };
  if (around.connectivity === "polling")
    return {
      kind: "agent",
      since: isoTime(row.availableAt),
      explanation: `It is due since ${isoTime(row.availableAt)} and goes out with the agent's next poll.`,
    };
  return { kind: "none", since: isoTime(row.availableAt), explanation: "Nothing is in its way; it is about to be sent." };
};

const waitsForAgent = (row: CommandRow, around: Surroundings): Blocked => {
  const since = isoTime(row.startedAt ?? row.ackedAt ?? row.sentAt ?? row.issuedAt);
  const bound = row.deadlineAt === null || row.deadlineAt === Infinity ? "" : `, until ${isoTime(row.deadlineAt)} at the latest`;
  if (around.connectivity === "none") {
    const seen = around.lastSeenAt?.toISOString() ?? since;
    return { kind: "offline", since: seen, explanation: `The agent holds it (${row.status}) and was last seen at ${seen}; its word is waited for${bound}.` };
  }
  const what = { sent: "to acknowledge it", acknowledged: "to begin", running: "to finish", canceling: "to confirm the cancellation" };
  const status = row.status === "sent" || row.status === "acknowledged" || row.status === "running" ? row.status : "canceling";
  return { kind: "agent", since, explanation: `Waits since ${since} for the agent ${what[status]}${bound}.` };
};

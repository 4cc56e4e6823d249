// The history of a command, one entry for each transition.
import type { z } from "zod";
import type { CommandStatus, TimelineEntry } from "../../../../protocol/index.ts";
import type { CommandHistory } from "../../../core/command-history.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/db.ts";
import { findCommands } from "./read.ts";
import type { CommandRow } from "./rows.ts";

type Entry = Omit<z.infer<typeof TimelineEntry>, "by">;
// A command has few transitions; the limit bounds even one that is redelivered all its life.
const TIMELINE_LIMIT = 1_000;

interface TimelineRow {
  readonly at: Date;
  readonly from_status: CommandStatus | null;
  readonly to_status: CommandStatus;
  readonly actor: string;
  readonly attempt: number;
  readonly node_id: string | null;
  readonly epoch: number | null;
  readonly code: string | null;
  readonly detail: Record<string, unknown> | null;
}

const READ_TIMELINE = statement<TimelineRow>(
  "commands.readTimeline",
  `select at, from_status, to_status, actor, attempt, node_id, epoch, code, detail
     from command_events where command_id = $1 and tenant_id = $2 order by id limit ${TIMELINE_LIMIT}`,
);

export const readTimeline = async (db: Db, { tenantId }: SystemScope, commandId: string): Promise<readonly Entry[]> => {
  const rows = await db.query(READ_TIMELINE, [commandId, tenantId]);
  return rows.map((row) => ({
    at: row.at.toISOString(),
    from: row.from_status,
    to: row.to_status,
    actor: row.actor,
    attempt: row.attempt,
    nodeId: row.node_id,
    epoch: row.epoch,
    code: row.code,
    detail: row.detail,
  }));
};

export const findHistories = async (db: Db, scope: SystemScope, commandIds: readonly string[]): Promise<readonly CommandHistory[]> => {
  const { tenantId } = scope;
  const found = await findCommands(
    db,
    commandIds.map((commandId) => ({ tenantId, commandId })),
  );
  return Promise.all(found.flatMap((command) => (command === null ? [] : [readHistory(db, scope, command)])));
};
const readHistory = async (db: Db, scope: SystemScope, command: CommandRow): Promise<CommandHistory> => ({
  command,
  steps: await readTimeline(db, scope, command.commandId),
});

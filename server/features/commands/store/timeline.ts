// The history of a command, one entry for each transition.
import type { z } from "zod";
import type { TimelineEntry } from "../../../../protocol/index.ts";
import type { CommandHistory } from "../../../core/ports/command-history.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/database/db.ts";
import { readSteps, type StoredStep } from "../steps.ts";
import { findCommands } from "./read.ts";

type Entry = Omit<z.infer<typeof TimelineEntry>, "by">;

const READ_HISTORY = statement<{ readonly history: readonly StoredStep[] | null }>(
  "commands.readHistory",
  "select c.history from commands_now c where c.command_id = $1 and c.tenant_id = $2",
);

export const readTimeline = async (db: Db, { tenantId }: SystemScope, commandId: string): Promise<readonly Entry[]> => {
  const [row] = await db.query(READ_HISTORY, [commandId, tenantId]);
  return readSteps(row?.history ?? []).map(({ at, by, node, ...step }) => ({ ...step, at: new Date(at).toISOString(), actor: by, nodeId: node }));
};

export const findHistories = async (db: Db, scope: SystemScope, commandIds: readonly string[]): Promise<readonly CommandHistory[]> => {
  const { tenantId } = scope;
  const found = await findCommands(
    db,
    commandIds.map((commandId) => ({ tenantId, commandId })),
  );
  return Promise.all(
    found.flatMap((command) => (command === null ? [] : [readTimeline(db, scope, command.commandId).then((steps): CommandHistory => ({ command, steps }))])),
  );
};

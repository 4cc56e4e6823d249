// Commands that wait for longer than they should, and outcomes that could not be handled, with the reason.
import type { FindStuck, Stuck } from "../../core/people/stuck.ts";
import type { Db } from "../../platform/database/db.ts";
import { type BlockedCommand, findBlocked, findOverdue, findUntold } from "./store/stuck.ts";

// The reaper runs every few seconds.
const OVERDUE_SECONDS = 60;
// A connected device takes a due command at once.
const BLOCKED_SECONDS = 900;
/** How many due commands are looked at, since most wait for absent devices. */
const BLOCKED_AMONG = 10_000;

const blocked = ({ tenant_id, command_id, device_id, since, ahead_id }: BlockedCommand): Stuck => ({
  kind: "command_blocked",
  tenantId: tenant_id,
  id: command_id,
  since,
  reason:
    ahead_id === null ? "the device is connected and does not take it: it runs as many commands as it can" : "the command before it in its lane has not ended",
  whatToDo: ahead_id === null ? "Look at the device's other commands, and restart its agent." : "Cancel the command before it, or wait for its time limit.",
  blockedBy: ahead_id ?? device_id,
});

export const createStuckCommands =
  (db: Db): FindStuck =>
  async (limit) => {
    const [overdue, waiting, untold] = await Promise.all([
      findOverdue(db, OVERDUE_SECONDS, limit),
      findBlocked(db, { afterSeconds: BLOCKED_SECONDS, limit, among: BLOCKED_AMONG }),
      findUntold(db, limit),
    ]);
    return [
      ...overdue.map(
        ({ tenant_id, command_id, status, since }): Stuck => ({
          kind: "command_overdue",
          tenantId: tenant_id,
          id: command_id,
          since,
          reason: `it is ${status} past its deadline, and the reaper has not ended it`,
          whatToDo: "Look at the job commands.reaper and run it.",
        }),
      ),
      ...waiting.map(blocked),
      ...untold.map(
        ({ tenant_id, command_id, type, attempts, since }): Stuck => ({
          kind: "outcome_untold",
          tenantId: tenant_id,
          id: command_id,
          since,
          reason: `the handler of ${type} has failed ${attempts + 1} times`,
          whatToDo: "Find the error in the log by the command's id. The gateway tries again by itself.",
        }),
      ),
    ];
  };

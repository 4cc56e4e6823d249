// Steps a bulk operation until it has ended, without waiting for its pace.
import { type BulkOperation, isOpen } from "../../../protocol/index.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import type { Caller, World } from "../../kit/gateway/world.ts";

const MAX_STEPS = 50;

/** One step, now. */
export const stepNow = async (world: World, operationId: string): Promise<void> => {
  await world.sql.query("update many_work set step_at = now() - interval '1 s' where record_id = $1", [operationId]);
  await runJob(world, "many.step");
};

export const readBulk = async (world: World, as: Caller, operationId: string): Promise<BulkOperation> =>
  (await world.call(as, "GET", `/v1/bulk-operations/${operationId}`)).body.data;

/** Steps until it is as awaited. The gateway's own job may hold a step, so one of these may find nothing to do. */
export const steppedUntil = async (world: World, as: Caller, operationId: string, isDone: (found: BulkOperation) => boolean): Promise<BulkOperation> => {
  for (let steps = 0; steps < MAX_STEPS; steps += 1) {
    const found = await readBulk(world, as, operationId);
    if (isDone(found)) return found;
    await stepNow(world, operationId);
  }
  throw new Error(`${operationId} is not as awaited after ${MAX_STEPS} steps: ${JSON.stringify(await readBulk(world, as, operationId))}`);
};

export const finished = (world: World, as: Caller, operationId: string): Promise<BulkOperation> =>
  steppedUntil(world, as, operationId, ({ completedAt }) => completedAt !== null);

/** Its commands are ordered. */
export const begun = (world: World, as: Caller, operationId: string): Promise<BulkOperation> =>
  steppedUntil(world, as, operationId, ({ counts }) => counts.running > 0);

/** Ends the commands of the operation's running items, as their agents would. */
export const endCommands = async (world: World, operationId: string, status: "succeeded" | "failed" = "succeeded"): Promise<void> => {
  if (isOpen(status)) throw new Error("an end is no open state");
  await world.sql.query(
    `with ended as (delete from command_queue q using bulk_items i where i.operation_id = $1 and i.status = 'running' and q.command_id = i.command_id returning q.command_id, q.tenant_id)
     update commands c set status = $2, finished_at = now(), failure_code = case when $2 = 'failed' then 'NO_LUCK' end from ended e where c.command_id = e.command_id and c.tenant_id = e.tenant_id`,
    [operationId, status],
  );
};

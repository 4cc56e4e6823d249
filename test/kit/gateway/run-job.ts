// A background job of a world, run when a test needs its work instead of at its next time.
import type { World } from "./world.ts";

const NEVER = new AbortController().signal;

/** Runs until nothing is left to do. Its own timer may run it meanwhile, so it must be a job that one node does at a time. */
export const runJob = async ({ app }: Pick<World, "app">, name: string): Promise<void> => {
  const job = app.jobs.find((each) => each.name === name);
  if (job === undefined) throw new Error(`the gateway has no job ${name}`);
  while ((await job.run(NEVER)) === true);
};

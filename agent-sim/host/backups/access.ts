// The way into a repository, by a signed call that is made anew for each command and kept nowhere.
import { isAbsolute, join } from "node:path";
import { z } from "zod";
import { RepositoryAccess } from "../../../protocol/records/backups/repository-access.ts";
import { type Agent, callWithRetry, errorOf, hasSucceeded, NoAnswer, type Time } from "../../agent/index.ts";
import { BackupProblem } from "./problem.ts";

const Answer = z.object({ data: RepositoryAccess.omit({ expiresAt: true }).extend({ mayInitialize: z.boolean().default(false) }) });
const WITHIN_MS = 60_000;

export interface Repository {
  /** Where it is: equal for all commands of one destination. */
  readonly key: string;
  readonly isLocal: boolean;
  /** None has been there yet, or somebody has given up the one that is lost. */
  readonly mayInitialize: boolean;
  /** RESTIC_REPOSITORY, RESTIC_PASSWORD, and the keys of a bucket. */
  readonly environment: Readonly<Record<string, string>>;
}

/** `of`: the path of the record that the command names. */
export type FindRepository = (of: `backups/${string}` | `backup-destinations/${string}`, commandId: string, signal: AbortSignal) => Promise<Repository>;

export interface FindRepositoryOptions {
  readonly call: Agent["call"];
  readonly time: Time;
  /** The agent's own folder for backups. */
  readonly folder: string;
}

/** They would make restic load or run something else. */
const FOREIGN = /^(PATH|HOME|LD_.*|GO.*|NODE_.*|RESTIC_(PASSWORD_(COMMAND|FILE)|REPOSITORY_FILE|CACHE_DIR)|MOORING_APP)$/;

export const findRepositoryBy =
  ({ call, time, folder }: FindRepositoryOptions): FindRepository =>
  async (of, commandId, signal) => {
    const refuse = (message: string): never => {
      throw new BackupProblem({ stage: "preparing", reason: "ACCESS_REFUSED", message });
    };
    const patience = { time, random: Math.random, untilMs: time.elapsedMs() + WITHIN_MS, signal };
    const answer = await callWithRetry(() => call("GET", `/v1/agent/${of}/access?commandId=${encodeURIComponent(commandId)}`), patience).catch(
      (error: unknown) => {
        signal.throwIfAborted();
        if (!(error instanceof NoAnswer)) throw error;
        return refuse(`the gateway does not give the access to the repository: ${error.message}`);
      },
    );
    const access = Answer.safeParse(answer.body).data?.data;
    if (!hasSucceeded(answer) || access === undefined)
      return refuse(`the gateway refuses the access to the repository: ${answer.status} ${errorOf(answer).code}`);
    const isLocal = access.kind === "local";
    const repository = isLocal && !isAbsolute(access.repository) ? join(folder, access.repository) : access.repository;
    const more = Object.entries(access.environment).filter(([name]) => !FOREIGN.test(name));
    return {
      key: access.destinationId,
      isLocal,
      mayInitialize: access.mayInitialize,
      environment: { ...Object.fromEntries(more), RESTIC_REPOSITORY: repository, RESTIC_PASSWORD: access.password },
    };
  };

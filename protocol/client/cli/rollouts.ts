// Rollouts: start one, and watch it to its end.
import type { Rollout } from "../../index.ts";
import { pause } from "../../kit/timers.ts";
import type { Mooring } from "../index.ts";
import { type CliCall, type CliCommand, DONE, FAILED } from "./command.ts";
import { allOf, fleetNamed, policyNamed } from "./find.ts";
import { WrongUse } from "./refusal.ts";

const LOOK_MS = 2_000;
/** Nothing happens in them any more. */
const OVER: ReadonlySet<Rollout["status"]> = new Set(["completed", "failed", "aborted", "rolled_back"] as const);

const lineOf = ({ status, statusReason, waitingFor, phase, phases, counts }: Rollout): string => {
  const why = statusReason ?? waitingFor;
  const failed = counts.failed + counts.timedOut;
  return `${status}${why === null ? "" : ` (${why})`}, phase ${phase} of ${phases.length}: ${counts.succeeded} of ${counts.total} done, ${failed} failed, ${counts.ordered + counts.verifying} under way`;
};

const watched = async (mooring: Mooring, rolloutId: string, { output, time, signal }: Pick<CliCall, "output" | "time" | "signal">): Promise<number> => {
  let last = "";
  for (;;) {
    const rollout = await mooring.rollouts.get.query({ rolloutId });
    const line = lineOf(rollout);
    if (line !== last) output.item(rollout, line);
    last = line;
    if (OVER.has(rollout.status)) return rollout.status === "completed" ? DONE : FAILED;
    if (signal.aborted) return FAILED;
    await pause(time, LOOK_MS, signal);
  }
};

const rollouts: CliCommand = {
  name: "rollouts",
  words: [],
  about: "List the rollouts.",
  options: {},
  run: async ({ output, gateway }) => {
    const mooring = await gateway();
    const rows = await allOf((page) => mooring.rollouts.list.query(page));
    output.table(rows, [
      ["NAME", ({ name }: (typeof rows)[number]) => name],
      ["ID", ({ rolloutId }: (typeof rows)[number]) => rolloutId],
      ["STATE", (rollout: (typeof rows)[number]) => lineOf(rollout)],
    ]);
    return DONE;
  },
};

const start: CliCommand = {
  name: "rollout start",
  words: ["FLEET"],
  about: "Start a rollout to a fleet.",
  options: {
    policy: { value: "POLICY", about: "The update policy. It is needed." },
    version: { value: "VERSION", about: "The version to bring, instead of the policy's." },
    watch: { about: "Watch it to its end." },
  },
  run: async (call) => {
    const {
      words: [named = ""],
      options,
      output,
      gateway,
    } = call;
    if (options["policy"] === undefined) throw new WrongUse("name the update policy with --policy");
    const mooring = await gateway();
    const [{ fleetId }, { updatePolicyId }] = await Promise.all([fleetNamed(mooring, named), policyNamed(mooring, String(options["policy"]))]);
    const version = options["version"] === undefined ? {} : { targetVersion: String(options["version"]) };
    const rollout = await mooring.rollouts.create.mutate({ fleetId, updatePolicyId, start: true, ...version });
    output.item(rollout, `${rollout.rolloutId} ${rollout.name}`);
    return options["watch"] === true ? watched(mooring, rollout.rolloutId, call) : DONE;
  },
};

const watch: CliCommand = {
  name: "rollout watch",
  words: ["ROLLOUT"],
  about: "Watch a rollout to its end, and exit with 1 unless it completes.",
  options: {},
  run: async (call) => watched(await call.gateway(), call.words[0] ?? "", call),
};

export const ROLLOUTS = [rollouts, start, watch];

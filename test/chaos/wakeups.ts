// Redis that forgets, freezes or goes deaf: it only wakes the gateways, so nothing may be lost and little may be late.
import { createHttp, pause, systemTime as time } from "../../agent-sim/agent/index.ts";
import { createPortal } from "../../agent-sim/fleet/portal.ts";
import { lateDeliveries } from "./checker.ts";
import { onRig, trialOf } from "./kills.ts";
import type { Filter } from "./proxy.ts";
import { createRig, type Rig, urlOf } from "./rig.ts";
import { SWEEP_FINDS_NOTHING } from "./sabotage.ts";
import type { Context, Outcome, Scenario } from "./scenario.ts";
import { fromRedis } from "./shortcuts.ts";
import { runTrial, type Stage, type Trial } from "./trial.ts";

const NODES = 2;
/** The sweep's bound and a second. */
const SWEPT_WITHIN_MS = 11_000;
const SWEEP_IS_BLIND = { how: "the database forgets which node holds a socket, so the sweep finds nothing", red: "late" } as const;

/** Scripts call the first node and agents hold sockets at the second: every command needs a wake-up that passes between them. */
const crossing = async (rig: Rig): Promise<Rig> => {
  const [first, second] = await Promise.all(rig.nodes.map(({ port }) => rig.door({ targets: () => [port] })));
  if (!first || !second) throw new Error("crossing needs two nodes");
  const http = createHttp(urlOf(first));
  const close = (): Promise<void> => {
    http.close();
    return rig.close();
  };
  return { ...rig, agentDoor: second, apiDoor: first, http, portal: createPortal(http, rig.credentials), close };
};

const judgeDelay = (trial: Trial): Outcome => {
  const { late, longestMs } = lateDeliveries(trial.history.lines, SWEPT_WITHIN_MS);
  return { ...trial, violations: { ...trial.violations, late }, notes: [...trial.notes, `the longest delivery took ${longestMs} ms from its 2xx`] };
};

const restarts: Scenario = {
  name: "redis-restart",
  promise: "R2",
  claim: "a command answered 2xx survives FLUSHALL, and kill -9 of a Redis that keeps nothing",
  needsRedis: true,
  control: { how: "2xx is answered when the command is in Redis; it is written to the database 0.6 s later", red: "ok-lost" },
  run: (context) => {
    const trouble = async ({ rig, running, random, fault, wait }: Stage): Promise<void> => {
      await wait(800);
      while (running()) {
        fault("FLUSHALL");
        await rig.redis?.ask("FLUSHALL");
        await wait(1_000);
        if (!running()) return;
        fault("kill -9 Redis, which keeps nothing");
        await rig.redis?.kill();
        await wait(300 + random() * 900);
        await rig.redis?.start();
        await wait(2_000);
      }
    };
    return onRig({ nodes: NODES, seed: context.seed, redis: true }, { ...trialOf(context, fromRedis), trouble });
  },
};

/** No wake-up passes from node to node while it lasts, which the sweep makes up for. */
const runFrozen = async ({ seed, scale, control }: Context): Promise<Outcome> => {
  const rig = await crossing(await createRig({ nodes: NODES, seed, redis: true, sabotage: control ? SWEEP_FINDS_NOTHING : undefined }));
  const forMs = Math.min(15_000, scale.seconds * 400);
  const trouble = async ({ running, fault, wait }: Stage): Promise<void> => {
    await wait(500);
    for (let n = 0; running(); n += 1) {
      const stops = n % 2 === 0;
      fault(stops ? "SIGSTOP Redis" : "DEBUG SLEEP");
      if (stops) rig.redis?.signal("SIGSTOP");
      // It answers when it has slept, later than anybody waits here.
      else void rig.redis?.ask("DEBUG", "SLEEP", String(forMs / 1_000)).catch(() => undefined);
      // A hint that comes later delivers what an earlier one should have: the control lets none through for too long.
      if (control) return;
      await wait(forMs);
      if (stops) rig.redis?.signal("SIGCONT");
      await wait(1_500);
    }
  };
  try {
    const relief = async (): Promise<void> => {
      if (control) await pause(time, SWEPT_WITHIN_MS + 1_000);
      rig.redis?.signal("SIGCONT");
    };
    return judgeDelay(await runTrial({ rig, seed, scale, impatient: control, trouble, relief }));
  } finally {
    await rig.close();
  }
};

const frozen: Scenario = {
  name: "redis-frozen",
  promise: "R2, R5",
  claim: `a Redis that is stopped or asleep for seconds loses nothing, and commands still arrive within ${SWEPT_WITHIN_MS / 1_000} s`,
  needsRedis: true,
  control: SWEEP_IS_BLIND,
  run: runFrozen,
};

const MESSAGE = /\$7\r\nmessage\r\n/i;
/** Swallows what is published while everything else passes: PING is answered, and nobody hears a thing. `who`: all connections, or those that were there when it began. */
export const deafness = (who: "all" | "old", passes: (chunk: string) => boolean = () => false) => {
  const state = { since: Number.POSITIVE_INFINITY, swallowed: 0 };
  const filter = (): Filter => {
    const bornMs = time.elapsedMs();
    return (direction, chunk) => {
      const deaf = time.elapsedMs() >= state.since && (who === "all" || bornMs < state.since);
      const text = deaf && direction === "down" ? chunk.toString("latin1") : "";
      if (!MESSAGE.test(text) || passes(text)) return chunk;
      state.swallowed += 1;
      return Buffer.alloc(0);
    };
  };
  return { state, filter };
};

const deaf: Scenario = {
  name: "redis-deaf",
  promise: "R5",
  claim: `with every published message swallowed while PING is answered, commands still arrive within ${SWEPT_WITHIN_MS / 1_000} s`,
  needsRedis: true,
  control: SWEEP_IS_BLIND,
  run: async ({ seed, scale, control }): Promise<Outcome> => {
    const { state, filter } = deafness("all");
    const sabotage = control ? SWEEP_FINDS_NOTHING : undefined;
    const rig = await crossing(await createRig({ nodes: NODES, seed, redis: true, redisFilter: filter, sabotage }));
    const trouble = async ({ running, fault, wait }: Stage): Promise<void> => {
      await wait(500);
      fault("the subscriptions go deaf");
      state.since = time.elapsedMs();
      while (running()) await wait(200);
    };
    try {
      const outcome = judgeDelay(await runTrial({ rig, seed, scale, impatient: control, trouble }));
      const notes = [...outcome.notes, `${state.swallowed} chunks of published messages swallowed`];
      return { ...outcome, violations: { ...outcome.violations, "nothing-swallowed": state.swallowed === 0 ? 1 : 0 }, notes };
    } finally {
      await rig.close();
    }
  },
};

export const redisScenarios: readonly Scenario[] = [restarts, frozen, deaf];

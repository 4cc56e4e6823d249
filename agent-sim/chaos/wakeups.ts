// Redis that forgets, freezes or goes deaf: it only wakes the gateways, so nothing may be lost and little may be late.
import { onRig, trialOf } from "./kills.ts";
import type { Filter } from "./proxy.ts";
import type { Context, Outcome, Scenario } from "./scenario.ts";
import type { Stage } from "./trial.ts";

const NODES = 2;
const YES_TOO_EARLY = { how: "a door answers one request in 25 with 2xx before it has asked the gateway", red: "ok-lost" } as const;
/** The sweep's bound and a second. */
const SWEPT_WITHIN_MS = 11_000;

const scenario = (name: string, promise: string, claim: string, trouble: (stage: Stage, context: Context) => Promise<void>): Scenario => ({
  name,
  promise,
  claim,
  needsRedis: true,
  control: YES_TOO_EARLY,
  run: (context) => onRig({ nodes: NODES, seed: context.seed, redis: true }, { ...trialOf(context), trouble: (stage) => trouble(stage, context) }),
});

const restarts = scenario("redis-restart", "R2", "a command answered 2xx survives restarts of Redis with all its data lost", async (stage) => {
  const { rig, running, random, fault, wait } = stage;
  await wait(800);
  while (running()) {
    fault("kill -9 Redis, which keeps nothing");
    await rig.redis?.kill();
    await wait(300 + random() * 900);
    await rig.redis?.start();
    await wait(2_000);
  }
});

const frozen = scenario(
  "redis-frozen",
  "R2",
  "a Redis that stops answering for seconds loses nothing and holds nobody up for good",
  async (stage, { scale }) => {
    const { rig, running, fault, wait } = stage;
    await wait(800);
    while (running()) {
      fault("SIGSTOP Redis");
      rig.redis?.signal("SIGSTOP");
      await wait(Math.min(15_000, scale.seconds * 400));
      rig.redis?.signal("SIGCONT");
      await wait(3_000);
    }
    rig.redis?.signal("SIGCONT");
  },
);

/** Swallows what was published, on every connection, and lets everything else through: PING is answered, and nobody hears a thing. */
const deafness = () => {
  const state = { deaf: false, swallowed: 0 };
  const filter = (): Filter => (direction, chunk) => {
    if (!state.deaf || direction === "up" || !/\$7\r\nmessage\r\n/i.test(chunk.toString("latin1"))) return chunk;
    state.swallowed += 1;
    return Buffer.alloc(0);
  };
  return { state, filter };
};

const deaf: Scenario = {
  name: "redis-deaf",
  promise: "R5, R6",
  claim: `with every published message swallowed while PING is answered, commands still arrive within ${SWEPT_WITHIN_MS / 1_000} s`,
  needsRedis: true,
  control: YES_TOO_EARLY,
  run: async (context): Promise<Outcome> => {
    const { state, filter } = deafness();
    const outcome = await onRig(
      { nodes: NODES, seed: context.seed, redis: true, redisFilter: filter },
      {
        ...trialOf(context),
        trouble: async ({ running, fault, wait }) => {
          await wait(500);
          fault("the subscriptions go deaf");
          state.deaf = true;
          while (running()) await wait(200);
        },
        relief: () => {
          state.deaf = false;
        },
      },
    );
    const late = (outcome.latencyMs.p99 ?? 0) > SWEPT_WITHIN_MS ? 1 : 0;
    const unheard = state.swallowed === 0 ? 1 : 0;
    return {
      ...outcome,
      violations: { ...outcome.violations, "swept-too-late": late, "nothing-swallowed": unheard },
      notes: [...outcome.notes, `${state.swallowed} chunks of published messages swallowed`],
    };
  },
};

export const redisScenarios: readonly Scenario[] = [restarts, frozen, deaf];

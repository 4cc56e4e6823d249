// Three nodes behind proxies that check readiness restart one after another under load, also as another release and back: every call is answered.
import { createHttp, type Http, NoAnswer, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createPortal } from "../../../agent-sim/fleet/portal.ts";
import { type FormerRelease, formerRelease } from "../rig/former-release.ts";
import { type Node, OWN_ROOT } from "../rig/node.ts";
import { createRig, type Rig, type RigOptions, urlOf } from "../rig/rig.ts";
import { ask } from "../rig/sql.ts";
import type { Context, Scale, Scenario, ScenarioOutcome } from "../scenario.ts";
import { runTrial, type TrialStage } from "../trial.ts";

const NODES = 3;
const API_SOCKETS = 64;
const LOOK_EVERY_MS = 100;
const READY_WITHIN_MS = 30_000;
const CONTROL_LOAD = 5;
/** An upgrade of three nodes and the way back take so long. */
const UPGRADE_SECONDS = 50;
/** The promise: no create waits for longer until one is answered again. */
const GAP_MS = 2_000;
/** Long enough for the proxies to notice, short enough for a test. */
const ENV = { LEAVE_NOTICE_SECONDS: "2", DRAIN_WINDOW_SECONDS: "1" } as const;

/** What a release would do that removes the old way at once: a column that its migration requires, and that the former release does not fill. */
const CONTRACT = "alter table commands add column contracted text not null default ''; alter table commands alter column contracted drop default";

interface Restart {
  readonly code: number | null;
  readonly tookMs: number;
}

interface Calls {
  readonly failed: string[];
  /** The longest time between two creates that were answered. */
  gapMs: number;
  createdMs: number | null;
}

/** Records every call without an answer or with a 5xx, before any retry. */
const counted = (http: Http, calls: Calls): Http => ({
  close: http.close,
  call: async (request) => {
    const answer = await http.call(request).catch((error: unknown) => {
      if (error instanceof NoAnswer) calls.failed.push(`${request.method} ${request.path}: ${error.message}`);
      throw error;
    });
    if (answer.status >= 500) calls.failed.push(`${request.method} ${request.path}: ${answer.status}`);
    if (answer.status === 201 || answer.status === 202) {
      const nowMs = time.elapsedMs();
      calls.gapMs = Math.max(calls.gapMs, nowMs - (calls.createdMs ?? nowMs));
      calls.createdMs = nowMs;
    }
    return answer;
  },
});

/** Tracks the ready nodes as a load balancer does. */
const watchReadiness = (nodes: readonly Node[]) => {
  const over = new AbortController();
  const probes = nodes.map((node) => ({ node, http: createHttp(urlOf(node), 1) }));
  let ready: readonly number[] = nodes.map(({ port }) => port);
  const look = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const states = await Promise.all(
        probes.map(({ http }) =>
          http.call({ method: "GET", path: "/v1/health/ready" }).then(
            ({ status }) => status === 200,
            () => false,
          ),
        ),
      );
      ready = nodes.map(({ port }) => port).filter((_, index) => states[index]);
      await pause(time, LOOK_EVERY_MS, over.signal);
    }
  };
  const looking = look();
  return {
    ports: (): readonly number[] => ready,
    all: async (): Promise<void> => {
      for (const untilMs = time.elapsedMs() + READY_WITHIN_MS; ready.length < nodes.length && time.elapsedMs() < untilMs; ) await pause(time, LOOK_EVERY_MS);
    },
    close: async (): Promise<void> => {
      over.abort();
      await looking;
      for (const { http } of probes) http.close();
    },
  };
};

/** Ends the node as an operator does, or kills it, and starts it again, in another package if one is named. */
const restart = async (node: Node, { kills = false, root }: { readonly kills?: boolean; readonly root?: string }): Promise<Restart> => {
  const startMs = time.elapsedMs();
  if (kills) await node.kill();
  const code = kills ? null : await node.stop();
  const tookMs = time.elapsedMs() - startMs;
  await node.start(root);
  return { code, tookMs };
};

interface Rolling {
  readonly context: Context;
  readonly options?: Partial<RigOptions>;
  readonly load: Scale;
  /** Restarts the nodes, each once all others are back. */
  readonly roll: (stage: TrialStage, next: (node: Node, how: Parameters<typeof restart>[1]) => Promise<void>) => Promise<void>;
}

const runRolling = async ({ context: { seed, control }, options, load, roll }: Rolling): Promise<ScenarioOutcome> => {
  const plain = await createRig({ nodes: NODES, seed, env: ENV, ...options });
  const readiness = watchReadiness(plain.nodes);
  const calls: Calls = { failed: [], gapMs: 0, createdMs: null };
  const restarts: Restart[] = [];
  const trouble = async (stage: TrialStage): Promise<void> => {
    await stage.wait(700);
    await roll(stage, async (node, how) => {
      restarts.push(await restart(node, how));
      await readiness.all();
    });
  };
  try {
    const [agentProxy, apiProxy] = [await plain.openProxy({ targets: readiness.ports }), await plain.openProxy({ targets: readiness.ports })];
    const http = counted(createHttp(urlOf(apiProxy), API_SOCKETS), calls);
    const rig: Rig = { ...plain, agentProxy, apiProxy, http, portal: createPortal(http, plain.credentials) };
    const trial = await runTrial({ rig, seed, scale: load, impatient: control, trouble });
    http.close();
    const slowest = Math.round(Math.max(...restarts.map(({ tookMs }) => tookMs)));
    return {
      ...trial,
      violations: {
        ...trial.violations,
        "unclean-exit": restarts.filter(({ code }) => code !== 0).length,
        "failed-calls": calls.failed.length,
        "gap-over-2s": calls.gapMs > GAP_MS ? 1 : 0,
      },
      notes: [
        ...trial.notes,
        `${restarts.length} restarts, the slowest stop took ${slowest} ms; the longest time without a create was ${Math.round(calls.gapMs)} ms`,
        ...calls.failed.slice(0, 3).map((text) => `failed: ${text}`),
      ],
    };
  } finally {
    await readiness.close();
    await plain.close();
  }
};

const runRestarts = async (context: Context): Promise<ScenarioOutcome> => {
  const { scale, control } = context;
  // Calls take milliseconds, so only a higher load makes sure that some are in progress when a node is killed.
  const load = control ? { ...scale, perSecond: scale.perSecond * CONTROL_LOAD } : scale;
  return runRolling({
    context,
    load,
    roll: async ({ rig, running, fault }, next) => {
      for (let round = 0; round < 20 && (round === 0 || running()); round += 1)
        for (const node of rig.nodes) {
          fault(`SIGTERM ${node.name}`);
          await next(node, { kills: control });
        }
    },
  });
};

const rollTo =
  ({ root: former, version }: FormerRelease, control: boolean): Rolling["roll"] =>
  async ({ rig, fault }, next) => {
    const builds = [
      { root: OWN_ROOT, name: "this build" },
      { root: former, name: version },
    ];
    for (const { root, name } of builds)
      for (const node of rig.nodes) {
        fault(`${node.name} becomes ${name}`);
        await next(node, { root });
        if (control && node === rig.nodes[0] && root === OWN_ROOT) await ask(rig.postgres, CONTRACT);
      }
  };

const runUpgrade = async (context: Context): Promise<ScenarioOutcome> => {
  const former = await formerRelease();
  const load = { ...context.scale, seconds: Math.max(context.scale.seconds, UPGRADE_SECONDS) };
  const outcome = await runRolling({ context, options: { root: former.root, redis: true }, load, roll: rollTo(former, context.control) });
  return { ...outcome, notes: [...outcome.notes, `from ${former.version} (${former.commit.slice(0, 8)}) to this build and back`] };
};

export const rollingScenarios: readonly Scenario[] = [
  {
    name: "rolling-restart",
    promise: "C5",
    claim: "when each of three nodes gets SIGTERM in turn under load, it exits with 0 in time, every call is answered, and no command or agent is lost",
    control: { how: "the nodes are killed instead of shut down", red: "failed-calls" },
    run: runRestarts,
  },
  {
    name: "rolling-upgrade",
    promise: "C5",
    claim:
      "when three nodes of the former release become this build one by one under load, and then the former release again, every call is answered within 2 s, and no command or agent is lost",
    control: { how: "the new schema requires what the former release does not write", red: "failed-calls" },
    needsRedis: true,
    run: runUpgrade,
  },
];

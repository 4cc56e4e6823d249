// Three nodes behind proxies that check readiness shut down one after another under load: every call is answered.
import { createHttp, type Http, NoAnswer, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createPortal } from "../../../agent-sim/fleet/portal.ts";
import type { Scenario } from "../scenario.ts";
import { runTrial, type TrialStage } from "../trial.ts";
import type { Node } from "./node.ts";
import { createRig, type Rig, urlOf } from "./rig.ts";

const NODES = 3;
const API_SOCKETS = 64;
const LOOK_EVERY_MS = 100;
const READY_WITHIN_MS = 30_000;
const CONTROL_LOAD = 5;
/** Long enough for the proxies to notice, short enough for a test. */
const ENV = { LEAVE_NOTICE_SECONDS: "2", DRAIN_WINDOW_SECONDS: "1" } as const;

interface Restart {
  readonly code: number | null;
  readonly tookMs: number;
}

/** Records every call without an answer or with a 5xx, before any retry. */
const counted = (http: Http, failed: string[]): Http => ({
  close: http.close,
  call: async (request) => {
    const answer = await http.call(request).catch((error: unknown) => {
      if (error instanceof NoAnswer) failed.push(`${request.method} ${request.path}: ${error.message}`);
      throw error;
    });
    if (answer.status >= 500) failed.push(`${request.method} ${request.path}: ${answer.status}`);
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

const restart = async (node: Node, control: boolean): Promise<Restart> => {
  const startMs = time.elapsedMs();
  if (control) await node.kill();
  const code = control ? null : await node.stop();
  const tookMs = time.elapsedMs() - startMs;
  await node.start();
  return { code, tookMs };
};

/** C5: restarts every node in turn, each once all others are back. */
export const rolling: Scenario = {
  name: "rolling-restart",
  promise: "C5",
  claim: "when each of three nodes gets SIGTERM in turn under load, it exits with 0 in time, every call is answered, and no command or agent is lost",
  control: { how: "the nodes are killed instead of shut down", red: "failed-calls" },
  run: async ({ seed, scale, control }) => {
    const plain = await createRig({ nodes: NODES, seed, env: ENV });
    const readiness = watchReadiness(plain.nodes);
    const failed: string[] = [];
    const restarts: Restart[] = [];
    const trouble = async ({ rig, running, fault, wait }: TrialStage): Promise<void> => {
      await wait(700);
      for (let round = 0; round < 20 && (round === 0 || running()); round += 1)
        for (const node of rig.nodes) {
          fault(`SIGTERM ${node.name}`);
          restarts.push(await restart(node, control));
          await readiness.all();
        }
    };
    try {
      const [agentProxy, apiProxy] = [await plain.openProxy({ targets: readiness.ports }), await plain.openProxy({ targets: readiness.ports })];
      const http = counted(createHttp(urlOf(apiProxy), API_SOCKETS), failed);
      const rig: Rig = { ...plain, agentProxy, apiProxy, http, portal: createPortal(http, plain.credentials) };
      // Calls take milliseconds, so only a higher load makes sure that some are in progress when a node is killed.
      const load = control ? { ...scale, perSecond: scale.perSecond * CONTROL_LOAD } : scale;
      const trial = await runTrial({ rig, seed, scale: load, impatient: control, trouble });
      http.close();
      const slowest = Math.round(Math.max(...restarts.map(({ tookMs }) => tookMs)));
      return {
        ...trial,
        violations: { ...trial.violations, "unclean-exit": restarts.filter(({ code }) => code !== 0).length, "failed-calls": failed.length },
        notes: [...trial.notes, `${restarts.length} restarts, the slowest stop took ${slowest} ms`, ...failed.slice(0, 3).map((text) => `failed: ${text}`)],
      };
    } finally {
      await readiness.close();
      await plain.close();
    }
  },
};

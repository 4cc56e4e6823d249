// Three nodes behind doors that look at readiness, asked to leave one after another under load: every call that was sent is answered.
import { createHttp, type Http, NoAnswer, pause, systemTime as time } from "../../agent-sim/agent/index.ts";
import { createPortal } from "../../agent-sim/fleet/portal.ts";
import type { Node } from "./node.ts";
import { createRig, type Rig, urlOf } from "./rig.ts";
import type { Scenario } from "./scenario.ts";
import { runTrial, type Stage } from "./trial.ts";

const NODES = 3;
const API_SOCKETS = 64;
const LOOK_EVERY_MS = 100;
const READY_WITHIN_MS = 30_000;
const CONTROL_LOAD = 5;
/** Long enough for the doors to see it, short enough for a test. */
const ENV = { LEAVE_NOTICE_SECONDS: "2", DRAIN_WINDOW_SECONDS: "1" } as const;

interface Restart {
  readonly code: number | null;
  readonly tookMs: number;
}

/** Every call without an answer, or with one that is the service's fault, before anybody tries again. */
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

/** The nodes that said so at the last look, as a load balancer knows them. */
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

/** C5: every node in turn, once all others are back. */
export const rolling: Scenario = {
  name: "rolling-restart",
  promise: "C5",
  claim: "SIGTERM of each of three nodes in turn under load: exit 0 within the bound, every call answered, nothing lost, nobody left behind",
  control: { how: "nodes are killed instead of asked to leave", red: "failed-calls" },
  run: async ({ seed, scale, control }) => {
    const plain = await createRig({ nodes: NODES, seed, env: ENV });
    const readiness = watchReadiness(plain.nodes);
    const failed: string[] = [];
    const restarts: Restart[] = [];
    const trouble = async ({ rig, running, fault, wait }: Stage): Promise<void> => {
      await wait(700);
      for (let round = 0; round < 20 && (round === 0 || running()); round += 1)
        for (const node of rig.nodes) {
          fault(`SIGTERM ${node.name}`);
          restarts.push(await restart(node, control));
          await readiness.all();
        }
    };
    try {
      const [agentDoor, apiDoor] = [await plain.door({ targets: readiness.ports }), await plain.door({ targets: readiness.ports })];
      const http = counted(createHttp(urlOf(apiDoor), API_SOCKETS), failed);
      const rig: Rig = { ...plain, agentDoor, apiDoor, http, portal: createPortal(http, plain.credentials) };
      // Calls take milliseconds: only a busy door surely has some under way when a node is killed.
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

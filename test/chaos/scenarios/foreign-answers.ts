// A proxy without its backend answers every agent for some seconds. The agents take nothing for the gateway's word, and come back apart from each other.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type AgentOptions, type Http, NoAnswer, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createRig } from "../rig/rig.ts";
import { asking, SCALES, type Scenario } from "../scenario.ts";
import { runTrial } from "../trial.ts";

const OUTAGE_MS = 8_000;
const BACK_WITHIN_MS = 20_000;
/** What the gateway had sent before may still arrive. */
const SETTLING_MS = 500;
/** Some poll only: their acks go over REST, through the proxy. 200 or so have a socket. */
const FULL_AGENTS = 250;
const POLL_ONLY_PCT = 20;
/** Of the attempts themselves, for which a busy machine may take longer. */
const HANDSHAKES_MS = 10_000;
/** 6.5 % of the fleet are to be expected in a second. Chance makes that up to a tenth mostly, and 15 % hardly ever; of a few agents it puts more together. */
const crowdOf = (agents: number): number => Math.max(8, Math.ceil(agents * 0.15));

const startDefaultBackend = async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(404, { "content-type": "text/html", connection: "close" }).end("<html>default backend - 404</html>");
  }).listen(0, "127.0.0.1");
  server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: 3\r\n\r\n404"));
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // as: it listens on TCP
  return {
    port,
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
};

/** Takes what anybody answers for the gateway's word. */
const credulous = (http: Http): Http => ({
  ...http,
  call: (request) =>
    http.call(request).catch((error: unknown) => {
      if (!(error instanceof NoAnswer)) throw error;
      return { status: 404, headers: {}, body: { success: false, code: "COMMAND_NOT_FOUND" } };
    }),
});

const SHOWN_SECONDS = 25;
/** How many in each second; those after the last shown one count as in it. */
const histogramOf = (times: readonly number[], sinceMs: number): readonly number[] => {
  const seconds = Array.from({ length: SHOWN_SECONDS }, () => 0);
  for (const atMs of times) {
    const at = Math.min(SHOWN_SECONDS - 1, Math.floor((atMs - sinceMs) / 1_000));
    seconds[at] = (seconds[at] ?? 0) + 1;
  }
  return seconds;
};

const foreignAnswers: Scenario = {
  name: "foreign-answers",
  promise: "R1, C6",
  claim: "a proxy that answers 404 for 8 s loses no result and stops no agent: all are back within 20 s, about a tenth of them at most in one second",
  control: { how: "agents take the proxy's answers for the gateway's", red: "settled-by-proxy" },
  run: async ({ seed, scale, control }) => {
    const rig = await createRig({ nodes: 1, seed, env: { POLL_SECONDS: "2" } });
    const backend = await startDefaultBackend();
    const state = { isOut: false, outAtMs: Number.POSITIVE_INFINITY, endMs: Number.POSITIVE_INFINITY, settledMeanwhile: 0 };
    const agentProxy = await rig.openProxy({ targets: () => (state.isOut ? [backend.port] : rig.nodes.map(({ port }) => port)) });
    const backAt = new Map<string, number>();
    /** Agents that poll keep their own rhythm; only those with a socket could crowd. */
    const reconnectedAt: number[] = [];
    /** When each agent meant to connect: a machine that stalls for a second brings all together that were due in it. */
    const plannedAt = new Map<string, number>();
    const slow = asking(rig.portal, (command) => ({ ...command, type: "wait", requiresAck: true, payload: { seconds: 2 } }));
    const agents = scale.agents === SCALES.full.agents ? FULL_AGENTS : scale.agents;

    const tune = ({ deviceId }: { readonly deviceId: string }, base: AgentOptions): AgentOptions => {
      const back = (): void => {
        if (time.elapsedMs() >= state.endMs && !backAt.has(deviceId)) backAt.set(deviceId, time.elapsedMs());
      };
      const on: AgentOptions["on"] = {
        ...base.on,
        ready: () => {
          if (time.elapsedMs() >= state.endMs && !backAt.has(deviceId)) reconnectedAt.push(plannedAt.get(deviceId) ?? time.elapsedMs());
          back();
          base.on?.ready?.();
        },
        away: (end, inMs) => {
          plannedAt.set(deviceId, time.elapsedMs() + (inMs ?? 0));
          base.on?.away?.(end, inMs);
        },
        polled: () => {
          if (base.mode === "poll") back();
          base.on?.polled?.();
        },
        settled: (answer) => {
          if (state.isOut && time.elapsedMs() - state.outAtMs > SETTLING_MS) state.settledMeanwhile += 1;
          base.on?.settled?.(answer);
        },
      };
      return { ...base, on, http: control ? credulous(base.http) : base.http };
    };
    try {
      const trial = await runTrial({
        rig: { ...rig, agentProxy, portal: slow },
        seed,
        scale: { ...scale, agents, haste: 1, seconds: Math.max(scale.seconds, 12) },
        pollOnlyPct: POLL_ONLY_PCT,
        impatient: control,
        tune,
        trouble: async ({ fault }) => {
          await pause(time, 3_000);
          [state.isOut, state.outAtMs] = [true, time.elapsedMs()];
          fault(`the proxy has lost its backend; ${agentProxy.reset()} connections cut`);
          await pause(time, OUTAGE_MS);
          [state.isOut, state.endMs] = [false, time.elapsedMs()];
          fault("the backend is back");
          await pause(time, BACK_WITHIN_MS + HANDSHAKES_MS);
        },
      });
      const { endMs, settledMeanwhile } = state;
      const inTime = [...backAt.values()].filter((atMs) => atMs <= endMs + BACK_WITHIN_MS);
      const tooLate = reconnectedAt.filter((atMs) => atMs > endMs + BACK_WITHIN_MS).length;
      const [peak, lastMs] = [Math.max(...histogramOf(reconnectedAt, endMs)), Math.max(0, ...backAt.values()) - endMs];
      return {
        ...trial,
        violations: {
          ...trial.violations,
          "settled-by-proxy": settledMeanwhile,
          late: agents - backAt.size + tooLate,
          crowded: peak > crowdOf(reconnectedAt.length) ? peak : 0,
        },
        notes: [
          ...trial.notes,
          `${inTime.length} of ${agents} agents were back within ${BACK_WITHIN_MS / 1_000} s of the end, the last after ${(lastMs / 1_000).toFixed(1)} s`,
          `meant to reconnect in the seconds after the end: ${histogramOf(reconnectedAt, endMs).join(" ")}`,
          `at most ${peak} of ${reconnectedAt.length} with a socket in one second; ${settledMeanwhile} acks settled while only the proxy answered`,
        ],
      };
    } finally {
      await rig.close();
      await backend.close();
    }
  },
};

export const foreignAnswerScenarios: readonly Scenario[] = [foreignAnswers];

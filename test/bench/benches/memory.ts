// Resident memory of an idle agent: a fresh, warm gateway before and after ten thousand agents, with garbage collected both times.
import { WebSocket } from "ws";
import { waitUntil } from "../gateway.ts";
import { startGatewayWithAgents } from "../gateway-with-agents.ts";
import { residentBytes } from "../machine.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

const WARM_UP = 200;
const WIDTH = 256;

/** Opens the inspector of a running process, as an operator would, and collects garbage twice. The process needs no flag for it. */
const collectGarbage = async ({ pid, said }: { readonly pid: number; said(): string }): Promise<void> => {
  const address = (): string | undefined => /listening on (ws:\S+)/.exec(said())?.[1];
  if (address() === undefined) process.kill(pid, "SIGUSR1");
  const socket = new WebSocket(await waitUntil(address, { withinMs: 10_000, said }));
  await new Promise((resolve, reject) => void socket.once("open", resolve).once("error", reject));
  for (const id of [1, 2]) {
    const done = new Promise((resolve) => void socket.once("message", resolve));
    socket.send(JSON.stringify({ id, method: "HeapProfiler.collectGarbage" }));
    await done;
  }
  socket.terminate();
};

/** The resident memory after garbage collection: the least of several readings, because presence is written meanwhile. */
const settledBytes = async (gateway: { readonly pid: number; said(): string }): Promise<number> => {
  const looks: number[] = [];
  for (let look = 0; look < 4; look += 1) {
    await collectGarbage(gateway);
    looks.push(residentBytes(gateway.pid));
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  return Math.min(...looks);
};

export const memory = (stage: BenchStage, agents: number): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    // The inspector opens on a free port; everything else is as in production.
    const { gateway, loader } = await startGatewayWithAgents(scope, agents, { env: { NODE_OPTIONS: "--inspect-port=0" } });
    await loader.connect(WARM_UP, WIDTH);
    await loader.cut();
    const before = await settledBytes(gateway);
    const { ready } = await loader.connect(agents, WIDTH);
    if (ready !== agents) throw new InvalidRun(`${ready} of ${agents} agents are ready`);
    const after = await settledBytes(gateway);
    const { ready: still } = await loader.tally();
    if (still !== agents) throw new InvalidRun(`${still} of ${agents} agents stayed`);
    const value = (after - before) / agents;
    return [{ id: "memory-per-agent", value, rounds: [{ agents, before, after }], note: `${agents} agents, ${Math.round(before / 2 ** 20)} MiB without them` }];
  });

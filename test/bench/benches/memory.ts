// Resident memory of an idle agent: a fresh, warm gateway before and after ten thousand agents, with garbage collected both times.
import { startGatewayWithAgents } from "../gateway-with-agents.ts";
import { openInspector } from "../inspector.ts";
import { residentBytes } from "../machine.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

const WARM_UP = 200;
const WIDTH = 256;

/** Twice, as the first round only finds some of it. */
const collectGarbage = async (gateway: { readonly pid: number; said(): string }): Promise<void> => {
  const inspector = await openInspector(gateway);
  for (let n = 0; n < 2; n += 1) await inspector.call("HeapProfiler.collectGarbage");
  inspector.close();
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
    const { gateway, loader } = await startGatewayWithAgents(scope, agents, { inspected: true });
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

// The cost of a connect: bare upgrades, socket.io's and ours, and ours up to the end of the hello with its rows written.
import { type RoundSummary, summarise } from "../arithmetic.ts";
import { createTenant, provision, startBenchGateway, writeIdentities } from "../gateway.ts";
import { type Loader, type Protocol, serverNs, startLoader } from "../loader.ts";
import { startReference } from "../peers.ts";
import type { BenchPlan } from "../plan.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

const SOCKETS = 1_000;
/** A hello writes to PostgreSQL, so a round has fewer of them. */
const HELLOS = 250;
const WIDTH = 64;

interface Entry {
  readonly name: string;
  readonly loader: Loader;
  readonly stage: "open" | "ready";
}

/** Microseconds of server time per socket. */
const visit = async ({ name, loader, stage }: Entry): Promise<number> => {
  const sockets = stage === "open" ? SOCKETS : HELLOS;
  const reply = await loader.churn(sockets, WIDTH, stage);
  if (reply.arrived !== sockets) throw new InvalidRun(`${name}: ${reply.arrived} of ${sockets} sockets arrived`);
  return serverNs(reply) / 1_000 / sockets;
};

export const handshake = (stage: BenchStage, plan: BenchPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const [echo, socketio, gateway] = [await startReference(scope, "echo"), await startReference(scope, "socketio"), await startBenchGateway(scope)];
    const members = await provision(gateway, await createTenant(scope), SOCKETS);
    const identities = writeIdentities(scope, members);
    const start = (protocol: Protocol, { pid, port }: { readonly pid: number; readonly port: number }): Promise<Loader> =>
      startLoader(scope, { protocol, port, connections: SOCKETS, serverPids: [pid], ...(protocol === "agent" ? { identities } : {}) });
    const agents = await start("agent", gateway);
    const entries: readonly Entry[] = [
      { name: "bare", loader: await start("ws", echo), stage: "open" },
      { name: "ours", loader: agents, stage: "open" },
      { name: "ready", loader: agents, stage: "ready" },
      { name: "socketio", loader: await start("socketio", socketio), stage: "open" },
    ];
    const costs = new Map<string, number[]>(entries.map(({ name }) => [name, []]));
    for (let round = 0; round <= plan.rounds; round += 1)
      for (const entry of round % 2 === 0 ? entries : entries.toReversed()) {
        const microseconds = await visit(entry);
        process.stderr.write(`  ${String(round).padStart(2)}  ${entry.name.padEnd(16)}${microseconds.toFixed(1).padStart(9)} us\n`);
        if (round > 0) costs.get(entry.name)?.push(microseconds);
      }
    const over = (above: string, below: string): RoundSummary =>
      summarise((costs.get(above) ?? []).map((value, at) => value / (costs.get(below)?.[at] ?? Number.NaN)));
    const rounds = [Object.fromEntries(costs)];
    const [first, second] = [over("ready", "bare"), over("socketio", "ours")];
    return [
      { id: "handshake", value: first.value, span: [first.min, first.max], rounds, note: `${summarise(costs.get("ready") ?? []).value.toFixed(0)} us each` },
      {
        id: "handshake-vs-socketio",
        value: second.value,
        span: [second.min, second.max],
        rounds,
        note: `${summarise(costs.get("ours") ?? []).value.toFixed(0)} us up to the end of the upgrade`,
      },
    ];
  });

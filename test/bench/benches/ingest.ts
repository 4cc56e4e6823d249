// Heartbeats at full speed: ours beside the bare echo of the same runtime and beside the peers, in turn on one core.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { checkRefusals } from "../controls.ts";
import { type BenchGateway, createTenant, provision, startBenchGateway, writeIdentities } from "../gateway.ts";
import { type Loader, type LoaderReply, type Protocol, startLoader } from "../loader.ts";
import { type Peer, startMosquitto, startReference } from "../peers.ts";
import type { BenchPlan } from "../plan.ts";
import { checkRows } from "../read-back.ts";
import type { Finding } from "../report.ts";
import { compareSubjects, InvalidRun, type Subject } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

const WIDTH = 256;
const MIXED_PERCENT = 20;

interface NamedLoader {
  readonly name: string;
  readonly loader: Loader;
}

const startNamedLoader = async (
  stage: BenchStage,
  name: string,
  peer: Peer,
  load: { readonly protocol: Protocol; readonly agents: number; readonly identities?: string },
): Promise<NamedLoader> => {
  const loader = await startLoader(stage, { port: peer.port, connections: load.agents, serverPids: [peer.pid], ...load });
  return { name, loader };
};

const connectAll = async ({ name, loader }: NamedLoader, agents: number): Promise<void> => {
  const { ready, refused } = await loader.connect(agents, WIDTH);
  if (ready !== agents) throw new InvalidRun(`${name}: ${ready} of ${agents} connections are ready, ${refused} were refused`);
};

interface IngestRun {
  readonly stage: BenchStage;
  readonly plan: BenchPlan;
  readonly gateway: BenchGateway;
  readonly ours: NamedLoader;
  readonly members: Awaited<ReturnType<typeof provision>>;
  /** Devices for the negative controls only. */
  readonly spare: Awaited<ReturnType<typeof provision>>;
}

const heartbeatsOf = ({ loader, name }: NamedLoader, { warmMs, windowMs }: BenchPlan, connections: number): Subject => ({
  name,
  visit: () => loader.run({ warmMs, windowMs, connections }),
});

/** Visits our gateway with the controls inside the window. */
const withControls = (
  { plan, gateway, ours, spare }: IngestRun,
  at: { readonly name: string; readonly agents: number; readonly mixedPercent: number },
): Subject => {
  let visit = 0;
  return {
    name: at.name,
    visit: async (): Promise<LoaderReply> => {
      const member = spare[visit % spare.length];
      visit += 1;
      const [reply, problems] = await Promise.all([
        ours.loader.run({ warmMs: plan.warmMs, windowMs: plan.windowMs, connections: at.agents, mixedPercent: at.mixedPercent }),
        member === undefined ? [] : checkRefusals(gateway.url, member),
      ]);
      if (problems.length > 0) throw new InvalidRun(problems.join("; "));
      return reply;
    },
  };
};

const readBack = async ({ stage, ours, members }: IngestRun): Promise<void> => {
  const file = join(stage.folder, `beats-${randomUUID().slice(0, 8)}`);
  await ours.loader.report(file);
  await checkRows(stage, members, file);
};

const thousand = async (run: IngestRun, peers: readonly NamedLoader[], echo: NamedLoader): Promise<readonly Finding[]> => {
  const agents = Math.min(1_000, run.members.length);
  for (const each of [echo, run.ours, ...peers]) await connectAll(each, agents);
  const subjects = [
    heartbeatsOf(echo, run.plan, agents),
    withControls(run, { name: "gateway", agents, mixedPercent: 0 }),
    withControls(run, { name: "gateway mixed", agents, mixedPercent: MIXED_PERCENT }),
    ...peers.map((peer) => heartbeatsOf(peer, run.plan, agents)),
  ];
  const versus = (["socketio", "ws", "mosquitto"] as const).filter((name) => peers.some((peer) => peer.name === name));
  const findings = await compareSubjects(
    subjects,
    [
      { id: "ingest-1k", of: "echo", by: "gateway" },
      { id: "ingest-mixed", of: "echo", by: "gateway mixed" },
      ...versus.map((name) => ({ id: `vs-${name}` as const, of: name, by: "gateway" })),
    ],
    run.plan,
  );
  await readBack(run);
  return [...findings, ...(versus.includes("mosquitto") ? [] : [{ id: "vs-mosquitto" as const, value: null, note: "mosquitto is not installed" }])];
};

const tenThousand = async (run: IngestRun, echo: NamedLoader): Promise<readonly Finding[]> => {
  const agents = run.members.length;
  for (const each of [echo, run.ours]) await connectAll(each, agents);
  const subjects = [heartbeatsOf(echo, run.plan, agents), withControls(run, { name: "gateway", agents, mixedPercent: 0 })];
  const findings = await compareSubjects(subjects, [{ id: "ingest-10k", of: "echo", by: "gateway" }], run.plan);
  await readBack(run);
  return findings;
};

/** Measures 1,000 agents and, if `agents` is higher, that many too. */
export const ingest = (stage: BenchStage, plan: BenchPlan, agents: number): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const [echoPeer, wsPeer, socketioPeer, mosquitto] = [
      await startReference(scope, "echo"),
      await startReference(scope, "ws"),
      await startReference(scope, "socketio"),
      await startMosquitto(scope),
    ];
    const gateway = await startBenchGateway(scope);
    const tenant = await createTenant(scope);
    const all = await provision(gateway, tenant, agents + 8);
    const [members, spare] = [all.slice(0, agents), all.slice(agents)];
    const ours = await startNamedLoader(scope, "gateway", gateway, { protocol: "agent", agents, identities: writeIdentities(scope, members) });
    const echo = await startNamedLoader(scope, "echo", echoPeer, { protocol: "ws", agents });
    const small = Math.min(1_000, agents);
    const peers = [
      await startNamedLoader(scope, "ws", wsPeer, { protocol: "ws", agents: small }),
      await startNamedLoader(scope, "socketio", socketioPeer, { protocol: "socketio", agents: small }),
      ...(mosquitto === null ? [] : [await startNamedLoader(scope, "mosquitto", mosquitto, { protocol: "mqtt", agents: small })]),
    ];
    const run = { stage: scope, plan, gateway, ours, members, spare };
    const first = await thousand(run, peers, echo);
    return agents > 1_000 ? [...first, ...(await tenThousand(run, echo))] : first;
  });

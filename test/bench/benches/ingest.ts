// Heartbeats at full speed: ours beside the bare echo of the same runtime and beside the peers, on one core each in turn.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { checkRefusals } from "../controls.ts";
import { createTenant, type Gateway, provision, startGateway, writeIdentities } from "../gateway.ts";
import { type Loader, type Protocol, type Reply, startLoader } from "../loader.ts";
import { type Peer, startMosquitto, startReference } from "../peers.ts";
import type { Plan } from "../plan.ts";
import { checkRows } from "../read-back.ts";
import type { Finding } from "../report.ts";
import { compare, type Subject, Untrue } from "../rounds.ts";
import type { Stage } from "../stage.ts";

const WIDTH = 256;
const MIXED_PERCENT = 20;

interface Crowd {
  readonly name: string;
  readonly loader: Loader;
}

const gather = async (
  stage: Stage,
  name: string,
  peer: Peer,
  crowd: { readonly protocol: Protocol; readonly agents: number; readonly identities?: string },
): Promise<Crowd> => {
  const loader = await startLoader(stage, { port: peer.port, connections: crowd.agents, serverPids: [peer.pid], ...crowd });
  return { name, loader };
};

const raise = async ({ name, loader }: Crowd, agents: number): Promise<void> => {
  const { ready, refused } = await loader.connect(agents, WIDTH);
  if (ready !== agents) throw new Untrue(`${name}: ${ready} of ${agents} connections are ready, ${refused} were refused`);
};

interface Hall {
  readonly stage: Stage;
  readonly plan: Plan;
  readonly gateway: Gateway;
  readonly ours: Crowd;
  readonly members: Awaited<ReturnType<typeof provision>>;
  /** Devices that are there for the negative controls alone. */
  readonly spare: Awaited<ReturnType<typeof provision>>;
}

const beating = ({ loader, name }: Crowd, { warmMs, windowMs }: Plan, connections: number): Subject => ({
  name,
  visit: () => loader.run({ warmMs, windowMs, connections }),
});

/** Ours, with the controls inside the window. */
const watched = ({ plan, gateway, ours, spare }: Hall, at: { readonly name: string; readonly agents: number; readonly mixedPercent: number }): Subject => {
  let visit = 0;
  return {
    name: at.name,
    visit: async (): Promise<Reply> => {
      const member = spare[visit % spare.length];
      visit += 1;
      const [reply, problems] = await Promise.all([
        ours.loader.run({ warmMs: plan.warmMs, windowMs: plan.windowMs, connections: at.agents, mixedPercent: at.mixedPercent }),
        member === undefined ? [] : checkRefusals(gateway.url, member),
      ]);
      if (problems.length > 0) throw new Untrue(problems.join("; "));
      return reply;
    },
  };
};

const readBack = async ({ stage, ours, members }: Hall): Promise<void> => {
  const file = join(stage.folder, `beats-${randomUUID().slice(0, 8)}`);
  await ours.loader.report(file);
  await checkRows(stage, members, file);
};

const thousand = async (hall: Hall, peers: readonly Crowd[], echo: Crowd): Promise<readonly Finding[]> => {
  const agents = Math.min(1_000, hall.members.length);
  for (const crowd of [echo, hall.ours, ...peers]) await raise(crowd, agents);
  const subjects = [
    beating(echo, hall.plan, agents),
    watched(hall, { name: "gateway", agents, mixedPercent: 0 }),
    watched(hall, { name: "gateway mixed", agents, mixedPercent: MIXED_PERCENT }),
    ...peers.map((peer) => beating(peer, hall.plan, agents)),
  ];
  const versus = (["socketio", "ws", "mosquitto"] as const).filter((name) => peers.some((peer) => peer.name === name));
  const findings = await compare(
    subjects,
    [
      { id: "ingest-1k", of: "echo", by: "gateway" },
      { id: "ingest-mixed", of: "echo", by: "gateway mixed" },
      ...versus.map((name) => ({ id: `vs-${name}` as const, of: name, by: "gateway" })),
    ],
    hall.plan,
  );
  await readBack(hall);
  return [...findings, ...(versus.includes("mosquitto") ? [] : [{ id: "vs-mosquitto" as const, value: null, note: "mosquitto is not installed" }])];
};

const tenThousand = async (hall: Hall, echo: Crowd): Promise<readonly Finding[]> => {
  const agents = hall.members.length;
  for (const crowd of [echo, hall.ours]) await raise(crowd, agents);
  const subjects = [beating(echo, hall.plan, agents), watched(hall, { name: "gateway", agents, mixedPercent: 0 })];
  const findings = await compare(subjects, [{ id: "ingest-10k", of: "echo", by: "gateway" }], hall.plan);
  await readBack(hall);
  return findings;
};

/** `agents` above 1,000: the larger crowd is measured too. */
export const ingest = (stage: Stage, plan: Plan, agents: number): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const [echoPeer, wsPeer, socketioPeer, mosquitto] = [
      await startReference(scope, "echo"),
      await startReference(scope, "ws"),
      await startReference(scope, "socketio"),
      await startMosquitto(scope),
    ];
    const gateway = await startGateway(scope);
    const tenant = await createTenant(scope);
    const all = await provision(gateway, tenant, agents + 8);
    const [members, spare] = [all.slice(0, agents), all.slice(agents)];
    const ours = await gather(scope, "gateway", gateway, { protocol: "agent", agents, identities: writeIdentities(scope, members) });
    const echo = await gather(scope, "echo", echoPeer, { protocol: "ws", agents });
    const small = Math.min(1_000, agents);
    const peers = [
      await gather(scope, "ws", wsPeer, { protocol: "ws", agents: small }),
      await gather(scope, "socketio", socketioPeer, { protocol: "socketio", agents: small }),
      ...(mosquitto === null ? [] : [await gather(scope, "mosquitto", mosquitto, { protocol: "mqtt", agents: small })]),
    ];
    const hall = { stage: scope, plan, gateway, ours, members, spare };
    const first = await thousand(hall, peers, echo);
    return agents > 1_000 ? [...first, ...(await tenThousand(hall, echo))] : first;
  });

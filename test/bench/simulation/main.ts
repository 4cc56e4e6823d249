// `npm run simulate`: what happens to fleets of 100,000 to 10,000,000 agents when all lose their sockets, a node dies, or nodes or the database are away. Writes the
// tables of docs/scale.md with --write.
import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { channelSettings } from "../../../server/gateway/channel/settings.ts";
import { drainWindowMs } from "../../../server/gateway/channel/socket-drain.ts";
import { loadInputs, SCALE_PAGE } from "../scale.ts";
import { type Cluster, type Costs, type Course, type Event, simulate } from "./cluster.ts";

const HELP = `npm run simulate -- [--agents N] [--nodes N] [--accept N] [--seed N] [--write] [--json]

  --agents N   the size of the fleet (default: 100,000, then 1,000,000, then 10,000,000)
  --nodes N    nodes (default: one for 20,000 agents, and a tenth more)
  --accept N   new sockets a second that a node takes (ACCEPT_PER_SECOND, default 200)
  --seed N     repeats the same run (default 1)
  --write      writes the tables into docs/scale.md
  --json       prints JSON
`;
export const SIMULATED_MARKS = /(?<=<!-- simulated -->\n).*?(?=<!-- \/simulated -->)/su;
const FLEETS = [100_000, 1_000_000, 10_000_000] as const;
const MINUTE_MS = 60_000;

/** With a tenth to spare, as docs/scale.md assumes. */
export const nodesFor = (agents: number): number => {
  const holding = Math.ceil(agents / channelSettings().maxConnections);
  return holding + Math.ceil(holding / 10);
};

export const EVENTS: readonly { readonly what: string; readonly event: (nodes: number) => Event }[] = [
  { what: "all sockets break at once", event: (nodesLeft) => ({ lost: 1, nodesLeft }) },
  { what: "one node dies", event: (nodes) => ({ lost: 1 / nodes, nodesLeft: nodes - 1 }) },
  { what: "all nodes are away for a minute, then start", event: (nodesLeft) => ({ lost: 1, nodesLeft, nodesAwayMs: MINUTE_MS }) },
  { what: "all sockets break while PostgreSQL stands still for a minute", event: (nodesLeft) => ({ lost: 1, nodesLeft, databaseAwayMs: MINUTE_MS }) },
];

const count = (value: number): string => (value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(2))));

const ROW: readonly (readonly [head: string, cell: (course: Course) => string])[] = [
  ["agents that lost their socket", ({ lost }) => count(lost)],
  ["half ready after", ({ halfSeconds }) => `${count(halfSeconds)} s`],
  ["99 % ready after", ({ mostSeconds }) => `${count(mostSeconds)} s`],
  ["all ready after", ({ allSeconds }) => `${count(allSeconds)} s`],
  ["attempts per agent", ({ attempts }) => count(attempts)],
  ["most attempts a second at a node", ({ peakPerNode }) => count(peakPerNode)],
  ["PostgreSQL behind by", ({ databaseBehindSeconds }) => `${count(databaseBehindSeconds)} s`],
];

export const costsFrom = async (): Promise<Costs> => {
  const { stormConnect, heartbeat, hellos } = await loadInputs();
  return { connectMs: stormConnect.value / 1_000, heartbeatMs: heartbeat.value / 1_000, hellosPerSecond: hellos.value };
};

export const tableOf = (clusters: readonly Cluster[]): string =>
  clusters
    .map((cluster) => {
      const { agents, nodes, settings } = cluster;
      const courses = EVENTS.map(({ event }) => simulate(cluster, event(nodes)));
      const drainSeconds = drainWindowMs({ connections: agents / nodes, others: nodes - 1 }, settings) / 1_000;
      const rows = [
        [`${count(agents)} agents on ${nodes} nodes`, ...EVENTS.map(({ what }) => what)],
        ["---", ...EVENTS.map(() => "---:")],
        ...ROW.map(([head, cell]) => [head, ...courses.map(cell)]),
      ];
      const drains = `A node of ${nodes} that shuts down hands its agents over within ${count(drainSeconds)} s; all in turn need ${count((drainSeconds * nodes) / 60)} min.`;
      return [drains, rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n")].join("\n\n");
    })
    .join("\n\n");

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      agents: { type: "string" },
      nodes: { type: "string" },
      accept: { type: "string" },
      seed: { type: "string" },
      write: { type: "boolean" },
      json: { type: "boolean" },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const wanted = (name: "agents" | "nodes" | "accept" | "seed", least: number, most: number): number | undefined => {
    const text = values[name];
    if (text === undefined) return undefined;
    const value = Number(text);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    process.stderr.write(`--${name} must be a whole number from ${least} to ${most}; see --help\n`);
    process.exit(2);
  };
  const agents = wanted("agents", 2, 20_000_000);
  const accept = wanted("accept", 1, 1_000_000);
  const settings = channelSettings(undefined, accept === undefined ? {} : { acceptPerSecond: accept, acceptBurst: 2 * accept });
  const [nodes, seed, costs] = [wanted("nodes", 2, 100_000), wanted("seed", 0, 2 ** 32 - 1) ?? 1, await costsFrom()];
  const clusters = (agents === undefined ? FLEETS : [agents]).map(
    (size): Cluster => ({ agents: size, nodes: nodes ?? Math.max(2, nodesFor(size)), settings, costs, seed }),
  );
  if (values.json) {
    const results = clusters.map((cluster) => ({
      agents: cluster.agents,
      nodes: cluster.nodes,
      events: EVENTS.map(({ what, event }) => ({ what, ...simulate(cluster, event(cluster.nodes)) })),
    }));
    process.stdout.write(`${JSON.stringify(results)}\n`);
    return;
  }
  const text = tableOf(clusters);
  process.stdout.write(`${text}\n`);
  if (values.write)
    await writeFile(
      SCALE_PAGE,
      (await readFile(SCALE_PAGE, "utf8")).replace(SIMULATED_MARKS, () => `\n${text}\n\n`),
    );
};

if (process.argv[1] === import.meta.filename) await main();

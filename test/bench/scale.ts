// `npm run docs:scale`: computes from measured costs what a million and ten million agents need, and writes it into docs/scale.md between two marks.
// `-- --from test/bench/results/latest.json` first copies the figures of a bench run into scale-inputs.json.
import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import { plannedSeconds } from "../../server/gateway/channel/heartbeat-pacing.ts";
import { channelSettings } from "../../server/gateway/channel/settings.ts";

export const SCALE_PAGE = new URL("../../docs/scale.md", import.meta.url);
export const SCALE_MARKS = /(?<=<!-- scale -->\n).*?(?=<!-- \/scale -->)/su;
const INPUTS = new URL("scale-inputs.json", import.meta.url);

const Input = z.object({ value: z.number().positive(), unit: z.string(), source: z.string() });
const Inputs = z.strictObject({
  heartbeat: Input,
  connect: Input,
  stormConnect: Input,
  agentBytes: Input,
  presenceRows: Input,
  commands: Input,
  broadcast: Input,
  commandWal: Input,
  commandBytes: Input,
  socketBytes: Input,
  presenceRow: Input,
  presenceWal: Input,
  hellos: Input,
  helloWal: Input,
  redisClaim: Input,
  redisEntry: Input,
  redisCall: Input,
  commandRows: Input,
});
export type Inputs = z.output<typeof Inputs>;

/** Chosen values, not measured ones. */
const CHOSEN = {
  heartbeatSeconds: 30,
  /** The limit of a node (MAX_CONNECTIONS), so that losing a node costs little. */
  agentsPerNode: 20_000,
  /** Extra nodes for those that are being replaced or are lost. */
  spare: 0.1,
  commandsPerAgentAndHour: 1,
  /** Redis commands per command of ours: owner, nudge, limits. */
  redisCallsPerCommand: 4,
  /** The highest planned use of a processor. */
  busy: 0.5,
  /** The longest reconnect window that agents get. */
  windowSeconds: 120,
  /** The WAL rate of one primary that its standbys can follow. */
  walMegabytes: 50,
} as const;

const PACE = { leastSeconds: CHOSEN.heartbeatSeconds, perSecond: channelSettings().heartbeatsPerSecond };

const MICRO = 1e-6;
const HOUR = 3_600;
const DAY = 24 * HOUR;
const FLEETS = [100_000, 1_000_000, 10_000_000] as const;

export const loadInputs = async (): Promise<Inputs> => Inputs.parse(JSON.parse(await readFile(INPUTS, "utf8")));

/** The figures of one fleet: rates per second, sizes in bytes, processors as a number. */
const needsOf = (agents: number, inputs: Inputs) => {
  const { agentsPerNode, spare, commandsPerAgentAndHour, redisCallsPerCommand, busy } = CHOSEN;
  const holding = Math.ceil(agents / agentsPerNode);
  // The gateway's own rule for the interval, for the nodes that hold the agents.
  const heartbeatSeconds = plannedSeconds(CHOSEN.heartbeatSeconds, { connections: agents, liveNodes: holding, overloaded: false }, PACE);
  const beats = agents / heartbeatSeconds;
  const commands = (agents * commandsPerAgentAndHour) / HOUR;
  const redis = (beats * inputs.redisClaim.value + commands * redisCallsPerCommand * inputs.redisCall.value) * MICRO;
  return {
    heartbeatSeconds,
    beats,
    beatsPerNode: beats / holding,
    commands,
    nodes: holding + Math.ceil(holding * spare),
    gatewayProcessors: beats * inputs.heartbeat.value * MICRO,
    memory: agents * (inputs.agentBytes.value + inputs.socketBytes.value),
    presenceProcessors: beats * inputs.presenceRow.value * MICRO,
    presenceWal: beats * inputs.presenceWal.value,
    commandRows: commands * inputs.commandRows.value,
    commandWal: commands * inputs.commandWal.value,
    commandBytes: commands * inputs.commandBytes.value * DAY,
    connectSecondsPerNode: Math.min(agents, agentsPerNode) * inputs.connect.value * MICRO,
    helloSeconds: agents / inputs.hellos.value,
    helloLog: agents * inputs.helloWal.value,
    redis,
    redisShards: Math.ceil(redis / busy),
    directory: agents * inputs.redisEntry.value,
    broadcastSeconds: agents / inputs.broadcast.value,
  };
};
type Needs = ReturnType<typeof needsOf>;

/** The number of agents that each part can carry, the weakest first. */
const limitsOf = (inputs: Inputs): readonly { readonly what: string; readonly agents: number }[] => {
  const { heartbeatSeconds, agentsPerNode, commandsPerAgentAndHour, busy, windowSeconds, walMegabytes } = CHOSEN;
  return [
    { what: "one node: its connection limit", agents: agentsPerNode },
    {
      what: `heartbeats: one node at ${PACE.perSecond.toLocaleString("en")} per second, one every ${heartbeatSeconds} s per agent`,
      agents: PACE.perSecond * heartbeatSeconds,
    },
    {
      what: "commands: one per hour and agent, at the rate of this machine's two processors",
      agents: (inputs.commands.value * HOUR) / commandsPerAgentAndHour,
    },
    {
      what: `commands: ${walMegabytes} MB/s of WAL`,
      agents: (walMegabytes * 1e6 * HOUR) / (inputs.commandWal.value * commandsPerAgentAndHour),
    },
    { what: `reconnect of all agents within ${windowSeconds} s: hellos of one primary`, agents: inputs.hellos.value * windowSeconds },
    { what: "presence: rows written over one connection", agents: inputs.presenceRows.value * heartbeatSeconds },
    {
      what: "directory: half a processor of one Redis",
      agents: busy / ((inputs.redisClaim.value * MICRO) / heartbeatSeconds),
    },
    { what: `presence: ${walMegabytes} MB/s of WAL`, agents: (walMegabytes * 1e6 * heartbeatSeconds) / inputs.presenceWal.value },
  ].toSorted((one, other) => one.agents - other.agents);
};

const two = (value: number): string => (value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(2))));
const bytes = (value: number): string => (value >= 1e9 ? `${two(value / 1e9)} GB` : `${two(value / 1e6)} MB`);
const round = (agents: number): string => Number(agents.toPrecision(2)).toLocaleString("en");

const ROWS: readonly (readonly [what: string, cell: (needs: Needs) => string])[] = [
  ["seconds between heartbeats of an agent", ({ heartbeatSeconds }) => String(heartbeatSeconds)],
  ["heartbeats per second", ({ beats }) => two(beats)],
  ["heartbeats per second and node", ({ beatsPerNode }) => two(beatsPerNode)],
  ["commands per second", ({ commands }) => two(commands)],
  ["nodes, including spares", ({ nodes }) => two(nodes)],
  ["processors busy with heartbeats, all nodes", ({ gatewayProcessors }) => two(gatewayProcessors)],
  ["memory for sockets and sessions, all nodes", ({ memory }) => bytes(memory)],
  ["PostgreSQL: presence rows per second", ({ beats }) => two(beats)],
  ["PostgreSQL: processors for presence", ({ presenceProcessors }) => two(presenceProcessors)],
  ["PostgreSQL: WAL for presence, per second", ({ presenceWal }) => bytes(presenceWal)],
  ["PostgreSQL: command rows per second", ({ commandRows }) => two(commandRows)],
  ["PostgreSQL: WAL for commands, per second", ({ commandWal }) => bytes(commandWal)],
  ["PostgreSQL: ended commands of a day", ({ commandBytes }) => bytes(commandBytes)],
  ["Redis: share of a processor", ({ redis }) => `${two(redis * 100)} %`],
  ["Redis: shards", ({ redisShards }) => String(redisShards)],
  ["Redis: memory of the directory", ({ directory }) => bytes(directory)],
  ["reconnect of all agents: processor time per node", ({ connectSecondsPerNode }) => `${two(connectSecondsPerNode)} s`],
  ["reconnect of all agents: time of one PostgreSQL", ({ helloSeconds }) => `${two(helloSeconds)} s`],
  ["reconnect of all agents: WAL", ({ helloLog }) => bytes(helloLog)],
  ["one command to every agent, at this machine's rate", ({ broadcastSeconds }) => `${two(broadcastSeconds / 60)} min`],
];

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map((_, column) => (column === 0 ? "---" : "---:")), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

/** The part of the page between the marks. */
export const scaleTables = (inputs: Inputs): string => {
  const needs = FLEETS.map((agents) => needsOf(agents, inputs));
  return [
    table(
      ["", ...FLEETS.map((agents) => agents.toLocaleString("en"))],
      ROWS.map(([what, cell]) => [what, ...needs.map(cell)]),
    ),
    "The limits with one of each part, the weakest first:",
    table(
      ["what", "agents"],
      limitsOf(inputs).map(({ what, agents }) => [what, round(agents)]),
    ),
    "The costs behind the tables:",
    table(
      ["cost", "from"],
      Object.values(inputs).map(({ value, unit, source }) => [`${value.toLocaleString("en")} ${unit}`, source]),
    ).replace("---:", "---"),
  ].join("\n\n");
};

const Results = z.object({ metrics: z.array(z.object({ id: z.string(), value: z.number().nullable(), rounds: z.array(z.unknown()) })) });
const WANTED = 19_000;
const AGENTS_OF_ONE_EACH = 10_000;

/** The inputs with the costs that a bench run measured; the others stay. */
export const takeOver = (inputs: Inputs, results: unknown): Inputs => {
  const metrics = new Map(Results.parse(results).metrics.map((metric) => [metric.id, metric]));
  const found = (id: string): number | undefined => metrics.get(id)?.value || undefined;
  const [share, each] = [found("idle-fleet"), found("one-each")];
  const ready = z
    .array(z.object({ ready: z.array(z.number()) }))
    .safeParse(metrics.get("handshake")?.rounds)
    .data?.[0]?.ready.toSorted((a, b) => a - b);
  const measured: Partial<Record<keyof Inputs, number | undefined>> = {
    heartbeat: share === undefined ? undefined : share / 100 / MICRO / (WANTED / CHOSEN.heartbeatSeconds),
    connect: ready?.[Math.floor(ready.length / 2)],
    agentBytes: found("memory-per-agent"),
    presenceRows: found("persisted-heartbeats"),
    commands: found("acked-commands"),
    broadcast: each === undefined ? undefined : AGENTS_OF_ONE_EACH / each,
    commandWal: found("command-wal"),
    commandBytes: found("command-bytes"),
  };
  return Inputs.parse(
    Object.fromEntries(
      Object.entries(inputs).map(([name, input]) => {
        const value = measured[name as keyof Inputs]; // as: the keys of an Inputs
        return [name, value === undefined ? input : { ...input, value: Number(value.toPrecision(3)) }];
      }),
    ),
  );
};

if (process.argv[1] === import.meta.filename) {
  const [flag, file] = process.argv.slice(2);
  const known = await loadInputs();
  const inputs = flag === "--from" && file !== undefined ? takeOver(known, JSON.parse(await readFile(file, "utf8"))) : known;
  await writeFile(INPUTS, `${JSON.stringify(inputs, null, 2)}\n`);
  const text = await readFile(SCALE_PAGE, "utf8");
  await writeFile(
    SCALE_PAGE,
    text.replace(SCALE_MARKS, () => `\n${scaleTables(inputs)}\n\n`),
  );
}

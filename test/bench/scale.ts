// `npm run docs:scale`: what a million and ten million agents need, computed from measured costs, written into docs/scale.md between its two marks.
// `-- --from test/bench/results/latest.json` takes the figures of a run of the bench over into scale-inputs.json first.
import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import { plannedSeconds } from "../../server/gateway/channel/heartbeat-pacing.ts";
import { channelSettings } from "../../server/gateway/channel/settings.ts";

export const PAGE = new URL("../../docs/scale.md", import.meta.url);
export const BETWEEN = /(?<=<!-- scale -->\n).*?(?=<!-- \/scale -->)/su;
const INPUTS = new URL("scale-inputs.json", import.meta.url);

const Input = z.object({ value: z.number().positive(), unit: z.string(), source: z.string() });
const Inputs = z.strictObject({
  heartbeat: Input,
  connect: Input,
  agentBytes: Input,
  presenceRows: Input,
  commands: Input,
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

/** What is chosen and not measured. */
const CHOSEN = {
  heartbeatSeconds: 30,
  /** A node takes in no more (MAX_CONNECTIONS), so that the loss of one stays small. */
  agentsPerNode: 20_000,
  /** Of the nodes, for those that are being replaced or are lost. */
  spare: 0.1,
  commandsPerAgentAndHour: 1,
  /** Single commands to Redis for one of ours: owner, nudge, limits. */
  redisCallsPerCommand: 4,
  /** No processor is planned to be busier than this. */
  busy: 0.5,
  /** The longest window that agents are told to come back in. */
  windowSeconds: 120,
  /** What one primary writes to its log without its standbys falling behind. */
  walMegabytes: 50,
} as const;

const PACE = { leastSeconds: CHOSEN.heartbeatSeconds, perSecond: channelSettings().heartbeatsPerSecond };

const MICRO = 1e-6;
const HOUR = 3_600;
const FLEETS = [100_000, 1_000_000, 10_000_000] as const;

export const loadInputs = async (): Promise<Inputs> => Inputs.parse(JSON.parse(await readFile(INPUTS, "utf8")));

/** Every figure of one fleet. Rates a second, sizes in bytes, processors as a number of them. */
const needsOf = (agents: number, inputs: Inputs) => {
  const { agentsPerNode, spare, commandsPerAgentAndHour, redisCallsPerCommand, busy } = CHOSEN;
  const holding = Math.ceil(agents / agentsPerNode);
  // The gateway's own rule, for the nodes that hold them.
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
    connectSecondsPerNode: Math.min(agents, agentsPerNode) * inputs.connect.value * MICRO,
    helloSeconds: agents / inputs.hellos.value,
    helloLog: agents * inputs.helloWal.value,
    redis,
    redisShards: Math.ceil(redis / busy),
    directory: agents * inputs.redisEntry.value,
    broadcastSeconds: agents / inputs.commands.value,
  };
};
type Needs = ReturnType<typeof needsOf>;

/** Up to how many agents each part carries, the weakest first. */
const limitsOf = (inputs: Inputs): readonly { readonly what: string; readonly agents: number }[] => {
  const { heartbeatSeconds, agentsPerNode, commandsPerAgentAndHour, busy, windowSeconds, walMegabytes } = CHOSEN;
  return [
    { what: "one node: as many sockets as it takes in", agents: agentsPerNode },
    {
      what: `heartbeats: as many agents on one node as beat every ${heartbeatSeconds} s within its ${PACE.perSecond.toLocaleString("en")} a second`,
      agents: PACE.perSecond * heartbeatSeconds,
    },
    {
      what: "commands: one an hour for each agent, at the pace of this machine's two processors",
      agents: (inputs.commands.value * HOUR) / commandsPerAgentAndHour,
    },
    { what: `everybody back within the ${windowSeconds} s that agents are told: hellos of one primary`, agents: inputs.hellos.value * windowSeconds },
    { what: "presence: rows of one connection", agents: inputs.presenceRows.value * heartbeatSeconds },
    {
      what: "directory: one Redis, half of its processor",
      agents: busy / ((inputs.redisClaim.value * MICRO) / heartbeatSeconds),
    },
    { what: `presence: ${walMegabytes} MB/s of log`, agents: (walMegabytes * 1e6 * heartbeatSeconds) / inputs.presenceWal.value },
  ].toSorted((one, other) => one.agents - other.agents);
};

const two = (value: number): string => (value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(2))));
const bytes = (value: number): string => (value >= 1e9 ? `${two(value / 1e9)} GB` : `${two(value / 1e6)} MB`);
const round = (agents: number): string => Number(agents.toPrecision(2)).toLocaleString("en");

const ROWS: readonly (readonly [what: string, cell: (needs: Needs) => string])[] = [
  ["seconds between the heartbeats of an agent", ({ heartbeatSeconds }) => String(heartbeatSeconds)],
  ["heartbeats a second", ({ beats }) => two(beats)],
  ["heartbeats a second of each node that holds agents", ({ beatsPerNode }) => two(beatsPerNode)],
  ["commands a second", ({ commands }) => two(commands)],
  ["nodes, the spare ones among them", ({ nodes }) => two(nodes)],
  ["processors busy with heartbeats, all nodes", ({ gatewayProcessors }) => two(gatewayProcessors)],
  ["memory for sockets and sessions, all nodes", ({ memory }) => bytes(memory)],
  ["PostgreSQL: rows of presence a second", ({ beats }) => two(beats)],
  ["PostgreSQL: processors for them", ({ presenceProcessors }) => two(presenceProcessors)],
  ["PostgreSQL: log for them, a second", ({ presenceWal }) => bytes(presenceWal)],
  ["PostgreSQL: rows for commands a second", ({ commandRows }) => two(commandRows)],
  ["Redis: share of a processor", ({ redis }) => `${two(redis * 100)} %`],
  ["Redis: shards", ({ redisShards }) => String(redisShards)],
  ["Redis: memory of the directory", ({ directory }) => bytes(directory)],
  ["everybody back: processor time of each node", ({ connectSecondsPerNode }) => `${two(connectSecondsPerNode)} s`],
  ["everybody back: time of one PostgreSQL", ({ helloSeconds }) => `${two(helloSeconds)} s`],
  ["everybody back: log", ({ helloLog }) => bytes(helloLog)],
  ["one command to everybody, at this machine's pace", ({ broadcastSeconds }) => `${two(broadcastSeconds / 60)} min`],
];

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map((_, column) => (column === 0 ? "---" : "---:")), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

/** The part of the page between its marks. */
export const scaleTables = (inputs: Inputs): string => {
  const needs = FLEETS.map((agents) => needsOf(agents, inputs));
  return [
    table(
      ["", ...FLEETS.map((agents) => agents.toLocaleString("en"))],
      ROWS.map(([what, cell]) => [what, ...needs.map(cell)]),
    ),
    "Where it ends, one of each, the weakest first:",
    table(
      ["what", "agents"],
      limitsOf(inputs).map(({ what, agents }) => [what, round(agents)]),
    ),
    "The costs behind it:",
    table(
      ["cost", "from"],
      Object.values(inputs).map(({ value, unit, source }) => [`${value.toLocaleString("en")} ${unit}`, source]),
    ).replace("---:", "---"),
  ].join("\n\n");
};

const Results = z.object({ metrics: z.array(z.object({ id: z.string(), value: z.number().nullable(), rounds: z.array(z.unknown()) })) });
const WANTED = 19_000;

/** What a run of the bench says of the costs; those that it did not measure stay as they are. */
export const takeOver = (inputs: Inputs, results: unknown): Inputs => {
  const metrics = new Map(Results.parse(results).metrics.map((metric) => [metric.id, metric]));
  const found = (id: string): number | undefined => metrics.get(id)?.value || undefined;
  const share = found("idle-fleet");
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
  const text = await readFile(PAGE, "utf8");
  await writeFile(
    PAGE,
    text.replace(BETWEEN, () => `\n${scaleTables(inputs)}\n\n`),
  );
}

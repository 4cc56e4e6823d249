// The arithmetic of a profile: V8's samples as shares of the parts that a command passes through. Pure.
import { z } from "zod";

export const CpuProfile = z.object({
  nodes: z.array(z.object({ id: z.number(), callFrame: z.object({ functionName: z.string(), url: z.string() }), children: z.array(z.number()).optional() })),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});
export type CpuProfile = z.output<typeof CpuProfile>;

const COMMANDS = "server/features/commands";
const CHANNEL = "server/gateway/channel";
/** The first that matches counts. Files that serve all parts match none and count for whoever calls them. */
const PARTS: readonly (readonly [part: string, files: RegExp])[] = [
  ["push", new RegExp(`${CHANNEL}/(command-push|device-notifier)|${COMMANDS}/(delivery|store/claim)|core/delivery`)],
  ["ack", new RegExp(`${CHANNEL}/acks|${COMMANDS}/(rules-ack|operations/agent)`)],
  ["row", new RegExp(`${COMMANDS}/(enqueue|admission|payload|queue-quota|command-types|operations/queue|store/(create|rows))`)],
  ["hints", new RegExp(`${COMMANDS}/(waiters|remote-)|platform/(bus|redis|outbox|session-owners|change-notifier|claims)|node_modules/(@?redis)|features/live`)],
  ["finish", new RegExp(`${COMMANDS}/`)],
  ["agent socket", new RegExp(`${CHANNEL}/`)],
  ["REST call", /server\/gateway\//],
  ["sockets to PostgreSQL and Redis", /^node:(net|internal\/(stream|js_stream|streams))/],
  ["PostgreSQL client", /node_modules\/pg|platform\/(db|pool|wire|prisma|tenant-client)|node_modules\/@prisma|prisma\/generated/],
];
const SPECIAL: ReadonlyMap<string, string> = new Map([
  ["(garbage collector)", "garbage"],
  ["(program)", "kernel and native code"],
]);
const IDLE = "(idle)";

const shortName = (url: string): string => url.replace(/^.*\/(dist|node_modules)\//, (_, folder: string) => (folder === "dist" ? "" : "node_modules/"));

interface Frame {
  readonly part: string;
  readonly file: string;
}

/** The part of each node: its own, or else that of its nearest caller that has one. */
const framesOf = ({ nodes }: CpuProfile): ReadonlyMap<number, Frame> => {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Map<number, Frame>();
  const visit = (id: number, from: string): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const { url, functionName } = node.callFrame;
    const file = url === "" ? functionName : shortName(url);
    const part = SPECIAL.get(functionName) ?? PARTS.find(([, files]) => files.test(file))?.[0] ?? from;
    found.set(id, { part, file });
    for (const child of node.children ?? []) visit(child, part);
  };
  const called = new Set(nodes.flatMap(({ children = [] }) => children));
  for (const { id } of nodes) if (!called.has(id)) visit(id, "rest");
  return found;
};

export interface Shares {
  readonly parts: ReadonlyMap<string, number>;
  readonly files: ReadonlyMap<string, number>;
}

const normalise = (times: ReadonlyMap<string, number>, total: number): ReadonlyMap<string, number> =>
  new Map([...times].map(([name, time]) => [name, time / total] as const).toSorted(([, a], [, b]) => b - a));

/** Shares of the time in which the processes were not idle, the largest first. */
export const sharesOf = (profiles: readonly CpuProfile[]): Shares => {
  const [parts, files] = [new Map<string, number>(), new Map<string, number>()];
  let total = 0;
  for (const profile of profiles) {
    const frames = framesOf(profile);
    for (const [at, id] of profile.samples.entries()) {
      const { part, file } = frames.get(id) ?? { part: "rest", file: "unknown" };
      const time = profile.timeDeltas[at] ?? 0;
      if (file === IDLE || time <= 0) continue;
      total += time;
      parts.set(part, (parts.get(part) ?? 0) + time);
      files.set(file, (files.get(file) ?? 0) + time);
    }
  }
  return { parts: normalise(parts, total), files: normalise(files, total) };
};

/** The first that matches counts. */
const STATEMENT_PARTS: readonly (readonly [part: string, texts: RegExp])[] = [
  ["PostgreSQL create", /insert into commands|insert into command_queue|insert into command_keys|next_command_seq/],
  ["PostgreSQL push", /with live as|skip locked|^select c\.command_id/],
  ["PostgreSQL finish", /update commands|delete from command_queue|update command_queue/],
  ["PostgreSQL events", /outbox_events|webhook|command_changes/],
  ["PostgreSQL presence", /device_presence/],
  ["PostgreSQL commit", /^(commit|begin)/],
];

export const statementPart = (text: string): string =>
  STATEMENT_PARTS.find(([, texts]) => texts.test(text.toLowerCase()))?.[0] ?? "PostgreSQL, other statements";

/** Values of the same name added up, the largest first. */
export const sums = (values: Iterable<readonly [name: string, value: number]>): ReadonlyMap<string, number> => {
  const found = new Map<string, number>();
  for (const [name, value] of values) found.set(name, (found.get(name) ?? 0) + value);
  return new Map([...found].toSorted(([, a], [, b]) => b - a));
};

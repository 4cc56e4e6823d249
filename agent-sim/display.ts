// The terminal output: one progress line a second, and a summary at the end.
import type { FleetProgress, Summary } from "./fleet/fleet.ts";

const ms = (value: number | null): string => (value === null ? "-" : `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`);

const DEFAULT_COLUMNS = 120;

/** Parts of the progress line, in order. A narrow terminal drops those with the highest rank first. */
const partsOf = ({
  phase,
  elapsedSeconds,
  agents,
  connected,
  heartbeatsPerSecond,
  accepted,
  open,
  recent,
}: FleetProgress): readonly [rank: number, text: string][] => [
  [0, `${String(elapsedSeconds).padStart(4)}s ${phase}`],
  [1, `connected ${connected}/${agents}`],
  [4, `heartbeats ${heartbeatsPerSecond}/s`],
  [2, `commands ${accepted}, ended ${accepted - open}`],
  [3, `create to ack p50 ${ms(recent.p50)} p99 ${ms(recent.p99)}`],
];

/** A command that needs no ack has ended once it is delivered. */
export const progressLine = (progress: FleetProgress, columns: number): string => {
  const parts = [...partsOf(progress)];
  const line = (): string => parts.map(([, text]) => text).join("  ");
  while (parts.length > 1 && line().length > columns) parts.splice(parts.indexOf(parts.reduce((last, part) => (part[0] > last[0] ? part : last))), 1);
  return line().slice(0, columns);
};

const deploymentLines = ({ deployments }: Summary): readonly string[] => {
  if (deployments === null) return [];
  const { ordered, active, failed, open, toActiveMs, allActiveMs } = deployments;
  const reasons = Object.entries(failed).map(([reason, count]) => `, ${count} ${reason}`);
  return [
    `  deployments      ${ordered} ordered, ${active} active, ${open} open${reasons.join("")}`,
    `  order to active  p50 ${ms(toActiveMs.p50)}, p99 ${ms(toActiveMs.p99)}, all ${ms(allActiveMs)}`,
  ];
};

export const summaryText = (summary: Summary): string => {
  const { agents, durationSeconds, seed, connected, heartbeats, reconnects, commands, latencyMs, ok } = summary;
  const statuses = Object.entries(commands.byStatus)
    .sort(([, a], [, b]) => b - a)
    .map(([status, count]) => `${count} ${status}`)
    .join(", ");
  return [
    "",
    `${ok ? "OK" : "NOT OK"}   ${agents} agents, ${durationSeconds} s, seed ${seed}`,
    `  connected        ${connected} of ${agents}, ${reconnects} reconnects, ${heartbeats} heartbeats answered`,
    `  commands         ${commands.accepted} accepted, ${commands.terminal} ended, ${commands.lost} lost, ${commands.executedTwice} executed twice`,
    `  ended as         ${statuses || "-"}`,
    `  create to push   p50 ${ms(latencyMs.createToPush.p50)}, p99 ${ms(latencyMs.createToPush.p99)}`,
    `  create to ack    p50 ${ms(latencyMs.createToAck.p50)}, p99 ${ms(latencyMs.createToAck.p99)}`,
    `  with the work    p50 ${ms(latencyMs.createToAckWithWork.p50)}, p99 ${ms(latencyMs.createToAckWithWork.p99)} (commands of type wait take as long as their payload says)`,
    ...deploymentLines(summary),
    "",
  ].join("\n");
};

export interface Screen {
  progress(progress: FleetProgress): void;
  notice(text: string): void;
  /** Ends the progress line. */
  end(): void;
}

/** Shows each notice once: a thousand agents may have the same problem. */
export const createScreen = (out: NodeJS.WriteStream, quiet: boolean): Screen => {
  const seen = new Set<string>();
  let dirty = false;
  const line = (text: string): void => {
    out.write(`${dirty ? "\r\x1b[K" : ""}${text}\n`);
    dirty = false;
  };
  return {
    progress: (progress) => {
      if (quiet) return;
      if (!out.isTTY) return line(progressLine(progress, Number.POSITIVE_INFINITY));
      // A terminal would wrap the line in its last column.
      out.write(`\r\x1b[K${progressLine(progress, (out.columns ?? DEFAULT_COLUMNS) - 1)}`);
      dirty = true;
    },
    notice: (text) => {
      if (seen.has(text) || seen.size >= 100) return;
      seen.add(text);
      line(text);
    },
    end: () => {
      if (dirty) out.write("\n");
      dirty = false;
    },
  };
};

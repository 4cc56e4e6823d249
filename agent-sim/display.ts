// What a person sees: one line a second while it runs, a few lines at the end.
import type { Progress, Summary } from "./fleet.ts";

const ms = (value: number | null): string => (value === null ? "-" : `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`);

export const progressLine = (progress: Progress): string => {
  const { phase, elapsedSeconds, agents, connected, heartbeatsPerSecond, accepted, pushed, acked, recent } = progress;
  return `${String(elapsedSeconds).padStart(4)}s ${phase.padEnd(12)} connected ${connected}/${agents}  heartbeats ${heartbeatsPerSecond}/s  commands ${accepted} accepted, ${pushed} pushed, ${acked} acked  create to ack p50 ${ms(recent.p50)} p99 ${ms(recent.p99)}`;
};

export const summaryText = ({ agents, durationSeconds, seed, connected, heartbeats, reconnects, commands, latencyMs, ok }: Summary): string => {
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
    "",
  ].join("\n");
};

export interface Screen {
  progress(progress: Progress): void;
  notice(text: string): void;
  /** Leaves the cursor on a line of its own. */
  end(): void;
}

/** The same notice is shown once: a thousand agents may have the same trouble. */
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
      if (!out.isTTY) return line(progressLine(progress));
      out.write(`\r\x1b[K${progressLine(progress).slice(0, (out.columns ?? 120) - 1)}`);
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

// The command types of the reference agent. Each does something small and real on this machine; the executor rejects other types.
import { statfs } from "node:fs/promises";
import { availableParallelism, freemem, loadavg, release, totalmem, uptime } from "node:os";
import { z } from "zod";
import type { Apps } from "./apps.ts";
import { type AgentMachine, percent, thisMachine } from "./machine.ts";
import { pause, type Time } from "./timing/time.ts";

/** What a long command says of itself while it runs. */
export interface ProgressFigures {
  readonly stage?: string;
  readonly bytesDone?: number;
  readonly bytesTotal?: number;
}

export interface HandlerContext {
  readonly commandId: string;
  /** Aborted on cancel and on the execution timeout. */
  readonly signal: AbortSignal;
  /** W3C trace context of the call that queued the command, or null. Pass it on to calls that the handler makes. */
  readonly traceparent: string | null;
  progress(pct: number, message: string, figures?: ProgressFigures): void;
}

export interface CommandHandler {
  /** The executor reports `running` before it starts. */
  readonly long: boolean;
  readonly cancelable: boolean;
  /** Cancel and timeout only ask it to end: what it returns or throws counts, because it may be past the point where it can go back. */
  readonly endsItself?: boolean;
  /** Running it twice is the same as once: after a restart of the agent, an unfinished command of this type runs again instead of failing. */
  readonly repeatable?: boolean;
  run(payload: unknown, context: HandlerContext): Promise<unknown>;
}
export type CommandHandlers = Readonly<Record<string, CommandHandler>>;

/** The payload does not match the type; the handler did nothing. */
export class InvalidPayload extends Error {
  override readonly name = "InvalidPayload";
}

/** The command failed with this code and this output. */
export class HandlerFailure extends Error {
  override readonly name = "HandlerFailure";
  readonly code: string;
  readonly output: unknown;

  constructor(code: string, output: unknown) {
    super(code);
    this.code = code;
    this.output = output;
  }
}

const handler = <S extends z.ZodType>(
  schema: S,
  run: (payload: z.output<S>, context: HandlerContext) => Promise<unknown>,
  traits: Partial<Omit<CommandHandler, "run">> = {},
): CommandHandler => ({
  long: false,
  cancelable: false,
  ...traits,
  run: async (payload, context) => {
    const parsed = schema.safeParse(payload);
    if (!parsed.success) throw new InvalidPayload(z.prettifyError(parsed.error).slice(0, 500));
    return run(parsed.data, context);
  },
});

const diagnose = async () => {
  const disk = await statfs(process.cwd());
  return {
    host: {
      release: release(),
      cpus: availableParallelism(),
      loadAverage: loadavg(),
      uptimeSeconds: Math.floor(uptime()),
    },
    memory: { totalBytes: totalmem(), freeBytes: freemem() },
    disk: { totalBytes: disk.blocks * disk.bsize, freeBytes: disk.bavail * disk.bsize, usedPct: percent(disk.blocks - disk.bfree, disk.blocks) },
    process: { pid: process.pid, node: process.version, uptimeSeconds: Math.floor(process.uptime()), rssBytes: process.memoryUsage.rss() },
  };
};

const FRESH_MS = 1_000;

/** All agents of this process share its machine, so they share one diagnosis a second. */
const sharedDiagnosis = (() => {
  let latest: { readonly atMs: number; readonly facts: ReturnType<typeof diagnose> } | null = null;
  return (nowMs: number): ReturnType<typeof diagnose> => {
    if (latest === null || nowMs - latest.atMs >= FRESH_MS) latest = { atMs: nowMs, facts: diagnose() };
    return latest.facts;
  };
})();

// Shared by the thousands of agents of one process.
const Nothing = z.object({});
const Anything = z.unknown();
const App = z.object({ appId: z.string().min(1).max(64).default("app_demo") });
const Wait = z.object({ seconds: z.number().min(0).max(600) });

const waitFor =
  (time: Time) =>
  async ({ seconds }: z.output<typeof Wait>, { signal, progress }: HandlerContext): Promise<unknown> => {
    const start = time.elapsedMs();
    const lasted = (): number => (time.elapsedMs() - start) / 1_000;
    while (lasted() < seconds && !signal.aborted) {
      await pause(time, Math.min(1_000, (seconds - lasted()) * 1_000), signal);
      if (lasted() < seconds) progress(percent(lasted(), seconds), `${Math.floor(lasted())} of ${seconds} s`);
    }
    signal.throwIfAborted();
    return { waitedSeconds: Math.round(lasted() * 1_000) / 1_000 };
  };

/** What an agent says of its machine, beside what is found on the one that it really runs on. */
const diagnosisOf = async ({ hostname, os, arch }: AgentMachine, nowMs: number): Promise<unknown> => {
  const { host, ...found } = await sharedDiagnosis(nowMs);
  return { host: { hostname, platform: os, arch, ...host }, ...found };
};

export interface HandlerOptions {
  readonly apps: Apps;
  readonly time: Time;
  readonly machine?: AgentMachine | undefined;
}

export const createHandlers = ({ apps, time, machine = thisMachine }: HandlerOptions): CommandHandlers => ({
  ping: handler(Nothing, async () => ({ pong: true, uptimeSeconds: Math.floor(uptime()) })),
  echo: handler(Anything, async (payload) => payload),
  diagnostics: handler(Nothing, () => diagnosisOf(machine, time.elapsedMs())),
  "start-app": handler(App, ({ appId }) => apps.start(appId)),
  "stop-app": handler(App, async ({ appId }) => apps.stop(appId)),
  "restart-app": handler(App, ({ appId }) => apps.restart(appId), { long: true }),
  wait: handler(Wait, waitFor(time), { long: true, cancelable: true }),
});

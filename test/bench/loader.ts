// The load generator, as the harness sees it: compiled once, started per subject, ordered by lines, answering in JSON.
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import type { Visit } from "./arithmetic.ts";
import { LOAD_CPU, pin } from "./machine.ts";
import { bringUp } from "./offspring.ts";
import type { Stage } from "./stage.ts";

const count = z.number();
const Reply = z.object({
  event: z.string(),
  /** Sockets that are usable now. */
  ready: count,
  /** Sockets that came as far as a churn wanted them. */
  arrived: count,
  /** Since the loader was started. */
  answers: count,
  wrong: count,
  refused: count,
  lost: count,
  errors: count,
  commands: count,
  applied: count,
  duplicates: count,
  busyNs: count,
  cpuNs: z.record(z.string(), count),
  windowNs: count.default(0),
  windowAnswers: count.default(0),
  /** Requests that were never answered. */
  missing: count.default(0),
  active: count.default(0),
  p50Ms: count.default(0),
  p99Ms: count.default(0),
});
export type Reply = z.output<typeof Reply>;

export type Protocol = "ws" | "agent" | "socketio" | "mqtt" | "http";

export interface Order {
  readonly warmMs: number;
  readonly windowMs: number;
  /** How many of the connections take part. */
  readonly connections: number;
  /** Requests a second; 0: each connection asks again as soon as it is answered. */
  readonly rate?: number;
  readonly mixedPercent?: number;
}

export interface Loader {
  connect(connections: number, width: number): Promise<Reply>;
  /** Connects so many one after another, `width` at a time, and ends each as soon as it is there. */
  churn(connections: number, width: number, stage: "open" | "ready"): Promise<Reply>;
  run(order: Order): Promise<Reply>;
  requests(file: string): Promise<Reply>;
  cut(): Promise<Reply>;
  tally(): Promise<Reply>;
  report(file: string): Promise<Reply>;
}

/** Says why there is none. */
export const compileLoader = (folder: string): { readonly program: string } | { readonly missing: string } => {
  const source = join(import.meta.dirname, "load");
  const program = join(folder, "load");
  const files = readdirSync(source).filter((name) => name.endsWith(".c"));
  const made = spawnSync("cc", ["-O2", "-D_GNU_SOURCE", "-o", program, ...files.map((name) => join(source, name))], { encoding: "utf8" });
  if (made.error !== undefined) return { missing: "there is no C compiler (cc), and a client in Node cannot keep a server in Node busy" };
  return made.status === 0 ? { program } : { missing: `the load generator does not compile: ${made.stderr.slice(0, 500)}` };
};

export interface LoaderOptions {
  readonly protocol: Protocol;
  readonly port: number;
  readonly connections: number;
  /** A file with `agent tenant secret` a line. */
  readonly identities?: string;
  /** The process whose cost is measured, with all its threads and children. */
  readonly serverPids: readonly number[];
}

const open = (program: string, { protocol, port, connections, identities }: LoaderOptions): ChildProcessWithoutNullStreams => {
  const words = [protocol, `127.0.0.1:${port}`, String(connections), ...(identities === undefined ? [] : [identities])];
  const child = bringUp(spawn(program, words, { stdio: ["pipe", "pipe", "pipe"] }));
  child.stderr.setEncoding("utf8").on("data", (text: string) => process.stderr.write(`  ${protocol}: ${text.slice(0, 400)}\n`));
  return child;
};

/** Ended with the stage. */
export const startLoader = async (stage: Pick<Stage, "program" | "add">, options: LoaderOptions): Promise<Loader> => {
  const child = open(stage.program, options);
  stage.add(() => child.kill("SIGKILL"));
  if (child.pid !== undefined) pin(child.pid, LOAD_CPU);
  const waiting: { readonly resolve: (reply: Reply) => void; readonly reject: (error: Error) => void }[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { resolve, reject } = waiting.shift() ?? {};
    const parsed = Reply.safeParse(JSON.parse(line));
    if (parsed.success) resolve?.(parsed.data);
    else reject?.(new Error(`the load generator said ${line}`));
  });
  child.once("exit", (code) => {
    for (const { reject } of waiting.splice(0)) reject(new Error(`the load generator ended with ${code}`));
  });
  const order = (line: string): Promise<Reply> =>
    new Promise((resolve, reject) => {
      if (child.exitCode !== null) return reject(new Error(`the load generator has ended with ${child.exitCode}`));
      waiting.push({ resolve, reject });
      child.stdin.write(`${line}\n`);
    });
  await order(`watch ours ${process.pid}`);
  for (const [at, pid] of options.serverPids.entries()) await order(`watch server${at} ${pid}`);
  return {
    connect: (connections, width) => order(`connect ${connections} ${width}`),
    churn: (connections, width, stage) => order(`churn ${connections} ${width} ${stage}`),
    run: ({ warmMs, windowMs, connections, rate = 0, mixedPercent = 0 }) => order(`run ${warmMs} ${windowMs} ${connections} ${rate} ${mixedPercent}`),
    requests: (file) => order(`requests ${file}`),
    cut: () => order("cut"),
    tally: () => order("tally"),
    report: (file) => order(`report ${file}`),
  };
};

export const serverNs = ({ cpuNs }: Reply): number => Object.entries(cpuNs).reduce((sum, [name, ns]) => (name.startsWith("server") ? sum + ns : sum), 0);

export const toVisit = (reply: Reply, answers = reply.windowAnswers): Visit => ({
  answers,
  windowNs: reply.windowNs,
  serverNs: serverNs(reply),
  loadNs: reply.cpuNs["load"] ?? 0,
  oursNs: reply.cpuNs["ours"] ?? 0,
  busyNs: reply.busyNs,
});

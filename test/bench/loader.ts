// The load generator as the harness uses it: compiled once, started per subject, controlled by lines of text, answering in JSON.
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import type { Visit } from "./arithmetic.ts";
import { endWithParent } from "./child-processes.ts";
import { LOAD_CPU, pin } from "./machine.ts";
import type { BenchStage } from "./stage.ts";

const count = z.number();
const LoaderReply = z.object({
  event: z.string(),
  /** Usable sockets now. */
  ready: count,
  /** Sockets that reached the stage of a churn. */
  arrived: count,
  /** Counted since the loader started. */
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
  /** Requests without an answer. */
  missing: count.default(0),
  active: count.default(0),
  p50Ms: count.default(0),
  p99Ms: count.default(0),
});
export type LoaderReply = z.output<typeof LoaderReply>;

export type Protocol = "ws" | "agent" | "socketio" | "mqtt" | "http";

export interface Order {
  readonly warmMs: number;
  readonly windowMs: number;
  /** How many connections take part. */
  readonly connections: number;
  /** Requests per second; 0: each connection sends its next request as soon as it has an answer. */
  readonly rate?: number;
  readonly mixedPercent?: number;
}

export interface Loader {
  readonly pid: number;
  connect(connections: number, width: number): Promise<LoaderReply>;
  /** Connects that many sockets, `width` at a time, and closes each once it reaches the stage. */
  churn(connections: number, width: number, stage: "open" | "ready"): Promise<LoaderReply>;
  run(order: Order): Promise<LoaderReply>;
  requests(file: string): Promise<LoaderReply>;
  cut(): Promise<LoaderReply>;
  tally(): Promise<LoaderReply>;
  report(file: string): Promise<LoaderReply>;
  /** The time from planned request to push of the stamped commands since the last such order. */
  pushes(): Promise<LoaderReply>;
}

/** Compiles the load generator, or returns why it cannot. */
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
  /** A file with one line `agent tenant secret` per agent. */
  readonly identities?: string;
  /** The processes to measure, with all their threads and children. */
  readonly serverPids: readonly number[];
}

const open = (program: string, { protocol, port, connections, identities }: LoaderOptions): ChildProcessWithoutNullStreams => {
  const words = [protocol, `127.0.0.1:${port}`, String(connections), ...(identities === undefined ? [] : [identities])];
  const child = endWithParent(spawn(program, words, { stdio: ["pipe", "pipe", "pipe"] }));
  child.stderr.setEncoding("utf8").on("data", (text: string) => process.stderr.write(`  ${protocol}: ${text.slice(0, 400)}\n`));
  return child;
};

/** Starts a load generator that ends with the stage. */
export const startLoader = async (stage: Pick<BenchStage, "program" | "add">, options: LoaderOptions): Promise<Loader> => {
  const child = open(stage.program, options);
  stage.add(() => child.kill("SIGKILL"));
  if (child.pid !== undefined) pin(child.pid, LOAD_CPU);
  const waiting: { readonly resolve: (reply: LoaderReply) => void; readonly reject: (error: Error) => void }[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { resolve, reject } = waiting.shift() ?? {};
    const parsed = LoaderReply.safeParse(JSON.parse(line));
    if (parsed.success) resolve?.(parsed.data);
    else reject?.(new Error(`the load generator answered ${line}`));
  });
  child.once("exit", (code) => {
    for (const { reject } of waiting.splice(0)) reject(new Error(`the load generator ended with ${code}`));
  });
  const order = (line: string): Promise<LoaderReply> =>
    new Promise((resolve, reject) => {
      if (child.exitCode !== null) return reject(new Error(`the load generator has ended with ${child.exitCode}`));
      waiting.push({ resolve, reject });
      child.stdin.write(`${line}\n`);
    });
  await order(`watch ours ${process.pid}`);
  for (const [at, pid] of options.serverPids.entries()) await order(`watch server${at} ${pid}`);
  return {
    pid: child.pid ?? -1,
    connect: (connections, width) => order(`connect ${connections} ${width}`),
    churn: (connections, width, stage) => order(`churn ${connections} ${width} ${stage}`),
    run: ({ warmMs, windowMs, connections, rate = 0, mixedPercent = 0 }) => order(`run ${warmMs} ${windowMs} ${connections} ${rate} ${mixedPercent}`),
    requests: (file) => order(`requests ${file}`),
    cut: () => order("cut"),
    tally: () => order("tally"),
    report: (file) => order(`report ${file}`),
    pushes: () => order("pushes"),
  };
};

export const serverNs = ({ cpuNs }: LoaderReply): number => Object.entries(cpuNs).reduce((sum, [name, ns]) => (name.startsWith("server") ? sum + ns : sum), 0);

export const toVisit = (reply: LoaderReply, answers = reply.windowAnswers): Visit => ({
  answers,
  windowNs: reply.windowNs,
  serverNs: serverNs(reply),
  loadNs: reply.cpuNs["load"] ?? 0,
  oursNs: reply.cpuNs["ours"] ?? 0,
  busyNs: reply.busyNs,
});

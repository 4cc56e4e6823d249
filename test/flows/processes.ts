// Real processes for the flows: a gateway that a test can kill, commands that run to their end, and a folder that cleans up after itself.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openEmbeddedPostgres } from "../../server/platform/postgres/embedded-postgres.ts";
import { silentLog } from "../../server/platform/telemetry/log.ts";
import { freePort } from "../kit/net/free-port.ts";
import { folderPrefix, markOfRun } from "../kit/setup/run-mark.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const built = (path: string): string => join(ROOT, "dist", path);
/** What a built installation has beside its packages. */
export const INSTALLED: readonly string[] = ["package.json", "tsconfig.json", "CHANGELOG.md", "prisma", "server", "protocol", "agent-sim", "portal", "dist"];
const WITHIN_MS = 60_000;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
export type Env = Readonly<Record<string, string>>;

/** The environment without any settings of this machine. */
const environment = (env: Env): NodeJS.ProcessEnv => ({ PATH: process.env["PATH"], HOME: process.env["HOME"], ...markOfRun(), ...env });

const collect = (child: ChildProcess): { stdout: string; stderr: string } => {
  const read = { stdout: "", stderr: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    read.stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    read.stderr += text;
  });
  return read;
};

export const runToEnd = async (
  command: readonly string[],
  { env, cwd = ROOT, withinMs = WITHIN_MS }: { readonly env: Env; readonly cwd?: string; readonly withinMs?: number },
): Promise<Finished> => {
  const [file = "", ...args] = command;
  const child = spawn(file, args, { cwd, env: environment(env), stdio: ["ignore", "pipe", "pipe"], timeout: withinMs, killSignal: "SIGKILL" });
  const read = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...read };
};

export const node = (script: string, args: readonly string[], options: { readonly env: Env; readonly cwd?: string }): Promise<Finished> =>
  runToEnd([process.execPath, built(script), ...args], options);

/** Whether something accepts new connections there. */
export const connects = (url: string): Promise<boolean> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    const answer = (taken: boolean): void => {
      socket.destroy();
      resolve(taken);
    };
    socket.once("connect", () => answer(true)).once("error", () => answer(false));
  });

export interface GatewayProcess {
  readonly url: string;
  readonly pid: number;
  readonly output: { readonly stdout: string; readonly stderr: string };
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Sends the signal and returns how the process ended. */
  end(signal: NodeJS.Signals): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

/** Starts a gateway as a person does; resolves once it says that it is ready. */
export const startGatewayProcess = async (
  env: Env,
  command: readonly string[] = [process.execPath, built("server/main.js")],
  cwd = ROOT,
): Promise<GatewayProcess> => {
  const [file = "", ...args] = command;
  const child = spawn(file, args, { cwd, env: environment(env), stdio: ["ignore", "pipe", "pipe"] });
  const output = collect(child);
  const ended = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const ready = new Promise<string>((resolve) => {
    child.stdout.on("data", () => {
      const url = /ready at (\S+)/.exec(output.stdout)?.[1];
      if (url !== undefined) resolve(url);
    });
  });
  const url = await Promise.race([ready, ended.then(() => Promise.reject(new Error(`the gateway ended: ${output.stdout}${output.stderr}`)))]);
  return {
    url,
    pid: child.pid ?? 0,
    output,
    ended: ended.then(([code, signal]) => ({ code, signal })),
    end: async (signal) => {
      child.kill(signal);
      const [code, by] = await ended;
      return { code, signal: by };
    },
  };
};

/** Every process whose command line, environment or folder names this one. */
export const processesOf = async (folder: string): Promise<readonly { readonly pid: number; readonly command: string }[]> => {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      // A process may end before its files are read.
      const read = (name: string): Promise<string> => readFile(`/proc/${pid}/${name}`, "utf8").catch(() => "");
      const [command, env, cwd] = await Promise.all([read("cmdline"), read("environ"), readlink(`/proc/${pid}/cwd`).catch(() => "")]);
      return { pid, command: command.replaceAll("\0", " ").trim(), theirs: [command, env, cwd].some((text) => text.includes(folder)) };
    }),
  );
  return found.filter(({ pid, theirs }) => theirs && pid !== process.pid).map(({ pid, command }) => ({ pid, command }));
};

export interface Sandbox {
  readonly dir: string;
  readonly env: Env;
  /** Kills every process that still runs here and removes the folder. */
  remove(): Promise<void>;
}

/** A folder, a port and settings for one gateway on the embedded default. */
export const createSandbox = async (more: Env = {}): Promise<Sandbox> => {
  const dir = await mkdtemp(join(tmpdir(), folderPrefix("flow")));
  const env = {
    DATA_DIR: join(dir, "data"),
    PORT: String(await freePort()),
    INTERNAL_PORT: "0",
    EDGE_PORT: "0",
    LOG_LEVEL: "error",
    OVERLOAD_LOOP_MS: "60000",
    LEAVE_NOTICE_SECONDS: "0",
    DRAIN_WINDOW_SECONDS: "0",
    ...more,
  };
  const remove = async (): Promise<void> => {
    for (const { pid } of await processesOf(dir)) {
      try {
        process.kill(pid, "SIGKILL");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
    await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  };
  return { dir, env, remove };
};

/** Passes on the address of the sandbox's embedded database, during or after a gateway's run. */
export const withDatabase = async <T>({ env }: Sandbox, use: (url: string) => Promise<T>): Promise<T> => {
  const server = await openEmbeddedPostgres({ dataDir: join(env["DATA_DIR"] ?? "", "postgres"), log: silentLog });
  try {
    return await use(server.url);
  } finally {
    await server.close();
  }
};

export interface BootstrapCredentials {
  readonly baseUrl: string;
  readonly tenantId: string;
  readonly userId: string;
  readonly token: string;
  readonly apiKey: string;
  readonly enrollmentToken: string;
}

/** Runs bootstrap on the command line, whose standard output is one JSON object. */
export const bootstrapTenant = async ({ env }: Sandbox, ...args: readonly string[]): Promise<BootstrapCredentials> => {
  const { code, stdout, stderr } = await node("server/cli.js", ["bootstrap", "--json", ...args], { env });
  if (code !== 0) throw new Error(`bootstrap ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as BootstrapCredentials;
};

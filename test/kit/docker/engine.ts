// Starts a Docker Engine of its own for a test file: real containers, networks and volumes, no registry. Images are made of busybox. The engine ends with
// everything that it has made; one that a killed run left behind is ended by the next.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "../checks/eventually.ts";
import { markOfRun } from "../setup/run-mark.ts";

const PREFIX = "mooring-docker-";
const STARTS_WITHIN_MS = 20_000;
const ENDS_WITHIN_MS = 30_000;
const OUTPUT_BYTES = 16_777_216;
/** As compose-plugin.mjs keeps it; a machine that has Compose by itself needs none. */
const PLUGIN = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "mooring-tests", "docker-compose");
// Debian installs daemons into folders that only root has in its PATH.
const PATH = `${process.env["PATH"]}:/usr/local/sbin:/usr/sbin:/sbin`;

const runFile = promisify(execFile);

export interface DockerEngine {
  /** By which docker finds the engine and the plugin; without it, docker talks to the machine's own engine. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs docker and returns its output. */
  docker(...words: readonly string[]): Promise<string>;
  /** Makes an image that has busybox and nothing else. `changes` are lines of a Dockerfile, such as `VOLUME /data`. */
  makeImage(name: string, ...changes: readonly string[]): Promise<void>;
  /** Makes an image of a Debian release with these packages, from the mirror that this machine's apt uses. */
  makeDebian(name: string, release: string, packages: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

const environmentIn = (folder: string): Record<string, string> => ({
  PATH,
  DOCKER_HOST: `unix://${join(folder, "docker.sock")}`,
  DOCKER_CONFIG: join(folder, "client"),
});

/** Of a docker with Compose and without an engine, in this folder. */
export const prepareDockerClient = (folder: string): Readonly<Record<string, string>> => {
  const plugins = join(folder, "client", "cli-plugins");
  mkdirSync(plugins, { recursive: true });
  writeFileSync(join(folder, "client", "config.json"), "{}");
  if (existsSync(PLUGIN)) symlinkSync(PLUGIN, join(plugins, "docker-compose"));
  return environmentIn(folder);
};

const linesOf = (text: string): readonly string[] => text.split("\n").filter((line) => line !== "");

/** The daemon that has this folder, if it runs. */
const daemonOf = (folder: string): number | null => {
  const file = join(folder, "pid");
  const pid = existsSync(file) ? Number.parseInt(readFileSync(file, "utf8"), 10) : Number.NaN;
  if (!Number.isInteger(pid) || !existsSync(`/proc/${pid}/cmdline`)) return null;
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder) ? pid : null;
};

const mountsIn = (folder: string): readonly string[] =>
  linesOf(readFileSync("/proc/self/mounts", "utf8")).flatMap((line) => {
    const [, place = ""] = line.split(" ");
    return place.startsWith(`${folder}/`) ? [place] : [];
  });

const start = async (folder: string): Promise<void> => {
  const log = openSync(join(folder, "log"), "a");
  const own = ["-H", `unix://${join(folder, "docker.sock")}`, "--pidfile", join(folder, "pid")];
  const folders = ["--data-root", join(folder, "data"), "--exec-root", join(folder, "exec")];
  // It changes nothing of the machine: no rules of the firewall, no forwarding, no network beside those of the projects.
  const apart = [
    "--storage-driver=vfs",
    "--iptables=false",
    "--ip6tables=false",
    "--ip-forward=false",
    "--ip-masq=false",
    "--bridge=none",
    "--shutdown-timeout=1",
  ];
  const daemon = spawn("dockerd", [...own, ...folders, ...apart], { env: { PATH, ...markOfRun() }, stdio: ["ignore", log, log], detached: true });
  let failure: string | null = null;
  daemon.once("error", (error) => (failure = String(error)));
  daemon.once("exit", (code) => (failure = `it ended with code ${code}`));
  daemon.unref();
  await eventually(async () => {
    if (failure === null) return runFile("docker", ["info"], { env: environmentIn(folder) });
    return null;
  }, STARTS_WITHIN_MS).catch((error: unknown) => (failure = String(error)));
  if (failure !== null) throw new Error(`dockerd needs root and did not start: ${failure}\n${readFileSync(join(folder, "log"), "utf8").slice(-4_000)}`);
};

/** Removes what the engine has made, ends it and leaves no mount behind. */
const end = async (folder: string): Promise<void> => {
  const docker = async (...words: readonly string[]): Promise<readonly string[]> =>
    linesOf((await runFile("docker", [...words], { env: environmentIn(folder) })).stdout);
  const containers = await docker("ps", "--all", "--quiet");
  if (containers.length > 0) await docker("rm", "--force", "--volumes", ...containers);
  await docker("network", "prune", "--force");
  const pid = daemonOf(folder);
  if (pid !== null) process.kill(pid, "SIGTERM");
  await eventually(() => {
    if (daemonOf(folder) !== null) throw new Error(`dockerd of ${folder} does not end`);
  }, ENDS_WITHIN_MS);
  for (const mount of mountsIn(folder).toReversed()) await runFile("umount", [mount]);
  rmSync(folder, { recursive: true });
};

/** A folder's name holds the pid of its run. The daemon of a killed run is started again, if need be, so that it removes its networks. */
const endLeftovers = async (): Promise<void> => {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(PREFIX))) {
    const owner = Number.parseInt(name.slice(PREFIX.length), 10);
    if (!Number.isInteger(owner) || existsSync(`/proc/${owner}`)) continue;
    const folder = join(tmpdir(), name);
    if (daemonOf(folder) === null) await start(folder);
    await end(folder);
  }
};

const BUSYBOX = ["/bin/busybox", "/usr/bin/busybox"];
const APPLETS = ["sh", "cat", "echo", "httpd", "mkdir", "nc", "printenv", "sleep", "true", "wget", "yes", "head", "seq", "kill"];

/** Makes an image of a folder, without the packages that apt keeps. */
const importTree = async (root: string, words: readonly string[], env: Readonly<Record<string, string>>): Promise<void> => {
  const packed = spawn("tar", ["-C", root, "--exclude=./var/cache/apt/archives/*.deb", "-c", "."], { stdio: ["ignore", "pipe", "inherit"] });
  const load = spawn("docker", ["import", ...words], { env, stdio: [packed.stdout, "ignore", "inherit"] });
  const [code] = await once(load, "exit");
  if (code !== 0) throw new Error(`docker import ended with code ${code}`);
};

export const startDockerEngine = async (): Promise<DockerEngine> => {
  await endLeftovers();
  const folder = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const environment = prepareDockerClient(folder);
  await start(folder);
  return {
    environment,
    docker: async (...words) => (await runFile("docker", [...words], { env: environment, maxBuffer: OUTPUT_BYTES })).stdout,
    makeImage: async (name, ...changes) => {
      const root = mkdtempSync(join(folder, "image-"));
      const [busybox] = BUSYBOX.filter(existsSync);
      const bin = join(root, "bin");
      mkdirSync(bin);
      for (const applet of APPLETS) symlinkSync("busybox", join(bin, applet));
      await runFile("cp", ["--dereference", busybox ?? "busybox", join(bin, "busybox")]);
      await importTree(root, [...['CMD ["sh"]', ...changes].flatMap((line) => ["--change", line]), "-", name], environment);
    },
    makeDebian: async (name, release, packages) => {
      const root = mkdtempSync(join(folder, "tree-"));
      await runFile(process.execPath, ["test/kit/setup/debian-tree.mjs", release, root, ...packages]);
      await importTree(root, ["-", name], environment);
      rmSync(root, { recursive: true });
    },
    close: () => end(folder),
  };
};

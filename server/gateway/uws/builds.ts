// Picks the build of uWebSockets.js that fits this machine. Each build carries binaries for certain Node versions and C libraries.

export interface HostMachine {
  readonly node: string;
  /** The number of Node's binary interface, which names the binary. */
  readonly abi: string;
  readonly platform: string;
  readonly arch: string;
  /** The version of glibc; null where there is none, as on macOS and on systems with musl. */
  readonly glibc: string | null;
}

export interface Build<T> {
  /** The older and the newer parser treat some malformed requests differently: docs/http-edge.md. */
  readonly name: "newer" | "older";
  /** Where it runs, for the message. */
  readonly covers: string;
  readonly load: () => Promise<T>;
}

/** Replaces the newer build by the official package, which npm's registry does not carry. */
export const OFFICIAL_LINE = "npm install --save-optional --save-exact uWebSockets.js-newer@github:uNetworking/uWebSockets.js#v20.67.0";

const systemOf = ({ platform, arch, glibc }: HostMachine): string => {
  if (platform !== "linux") return `${platform}-${arch}`;
  return `${platform}-${arch} with ${glibc === null ? "musl or another C library that is not glibc" : `glibc ${glibc}`}`;
};

const isMissing = (cause: unknown): boolean => cause instanceof Error && "code" in cause && cause.code === "MODULE_NOT_FOUND";

const hintOf = ({ platform, glibc }: HostMachine, causes: readonly unknown[]): string => {
  if (platform === "linux" && glibc === null) return "No build runs without glibc: use a system or an image with glibc, such as Debian, instead of Alpine.";
  if (causes.some(isMissing)) return "The newer build is an optional dependency and is not installed: run npm ci without --omit=optional.";
  return `For a newer Node version, install the official package: ${OFFICIAL_LINE}`;
};

export interface LoadedBuild<T> {
  readonly name: Build<T>["name"];
  readonly library: T;
}

/** Loads the first build that this machine can run. The error says which machines the builds cover, and what to do. */
export const loadFirst = async <T>(builds: readonly Build<T>[], readMachine: () => HostMachine): Promise<LoadedBuild<T>> => {
  const causes: unknown[] = [];
  for (const { name, load } of builds) {
    try {
      return { name, library: await load() };
    } catch (cause) {
      causes.push(cause);
    }
  }
  const machine = readMachine();
  throw new Error(
    [
      `uWebSockets.js has no binary for Node ${machine.node} (ABI ${machine.abi}) on ${systemOf(machine)}. It has binaries for`,
      ...builds.map(({ covers }) => `  ${covers}`),
      hintOf(machine, causes),
    ].join("\n"),
    { cause: new AggregateError(causes, "no build of uWebSockets.js could be loaded") },
  );
};

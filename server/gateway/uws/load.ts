// Loads uWebSockets.js: the newer build where this machine can run it, otherwise the older.
// It reads its header limit from the environment while it loads, hence the assignment before the imports.
process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= "16384";

import { createRequire } from "node:module";
import { type Build, type HostMachine, loadFirst } from "./builds.ts";

type Library = typeof import("uWebSockets.js") & {
  /** Not in its type declarations: keeps the header "uWebSockets: 20" out of answers and upgrades. The error pages of its parser keep their words. */
  readonly _cfg: (option: "silent") => void;
};

const require = createRequire(import.meta.url);

const BUILDS: readonly Build<Library>[] = [
  {
    name: "newer",
    covers: "Node 20, 22, 24 and 25 on x64 and arm64: Linux with glibc 2.38 or later (Debian 13, Ubuntu 24.04), macOS, Windows (x64)",
    // Not by import: on Node 20 a binary that cannot be loaded then also rejects a promise of the module loader that nobody handles.
    load: async () => require("uWebSockets.js-newer") as Library,
  },
  {
    name: "older",
    covers: "Node 20 and 22 on x64 and arm64: Linux with glibc 2.27 or later, macOS, Windows (x64)",
    load: async () => (await import("uWebSockets.js")) as Library,
  },
];

const readGlibc = (): string | null => {
  const { header } = process.report.getReport() as { readonly header: { readonly glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime ?? null;
};

const readMachine = (): HostMachine => ({
  node: process.versions.node,
  abi: process.versions.modules,
  platform: process.platform,
  arch: process.arch,
  glibc: process.platform === "linux" ? readGlibc() : null,
});

const loaded = await loadFirst(BUILDS, readMachine);

export const uws = loaded.library;
export const buildName = loaded.name;

uws._cfg("silent");

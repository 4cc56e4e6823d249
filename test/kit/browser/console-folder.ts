// A folder as the build of the console leaves it, with one page and one module: for tests of what serves it.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

export const PAGE = '<!doctype html><title>Console</title><link rel="icon" href="/favicon.svg"><script type="module" src="/assets/index-Ab_1-cD2.js"></script>';
export const MODULE = `document.title = "loaded"; // ${"x".repeat(2_000)}`;
export const MODULE_PATH = "/assets/index-Ab_1-cD2.js";

const FILES: Readonly<Record<string, string>> = { "index.html": PAGE, "favicon.svg": "<svg/>", [MODULE_PATH.slice(1)]: MODULE };

/** `more`: further files, by name. */
export const makeConsoleFolder = async (more: Readonly<Record<string, string>> = {}) => {
  const folder = await mkdtemp(join(tmpdir(), "mooring-console-"));
  for (const [name, text] of Object.entries({ ...FILES, ...more })) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
    if (name.endsWith(".svg")) continue;
    await writeFile(join(folder, `${name}.br`), brotliCompressSync(text));
    await writeFile(join(folder, `${name}.gz`), gzipSync(text));
  }
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
};

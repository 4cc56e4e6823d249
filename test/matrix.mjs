// `npm run test:matrix`: the tests on the other versions that we promise to work with. `npm test` runs one combination.
// A name after the command runs that row alone: npm run test:matrix -- postgresql-15
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inDebian } from "./kit/setup/debian-tree.mjs";

const NODE_22 = "22";
const NODE_24 = "24";
const DEBIAN_13 = "trixie";
const POSTGRES_ROW = "postgresql-15";
const POSTGRES_15 = "/usr/lib/postgresql/15/bin";
/** Tests of sessions themselves and of processes that bring their own PostgreSQL say nothing about a pooler. */
const THROUGH_POOLER = ["test/contract", "test/features", "test/channel", "test/gateway", "test/release/walls", "test/release/flows/pooler"];

const VITEST = [join("node_modules", "vitest", "vitest.mjs"), "run", "--config", "test/vitest.config.ts"];
const vitest = (node, env, filters = []) =>
  spawnSync(node, [...VITEST, ...filters], {
    stdio: "inherit",
    env: { ...process.env, ...env },
  }).status === 0;

/** What depends on the build of uWebSockets.js: Debian 13 runs the newer one. */
const ON_UWS = ["test/channel", "test/gateway", "test/release/walls/values", "test/release/http-timeouts"];

/** The npm package of a platform is the binary itself, and needs no install script. */
const withNode = (major, run) => {
  const folder = mkdtempSync(join(tmpdir(), "mooring-node-"));
  const name = `node-${process.platform}-${process.arch}`;
  const { status } = spawnSync("npm", ["install", "--silent", "--no-save", "--prefix", folder, `${name}@${major}`], { stdio: "inherit" });
  try {
    return status === 0 && run(join(folder, "node_modules", name, "bin", "node"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const rows = {
  [POSTGRES_ROW]: () => vitest(process.execPath, { TEST_POSTGRES: POSTGRES_15 }),
  pgbouncer: () => vitest(process.execPath, { TEST_POOLER: "pgbouncer" }, THROUGH_POOLER),
  "node-22": () => withNode(NODE_22, (node) => vitest(node, {})),
  "debian-13": () =>
    withNode(NODE_24, (node) =>
      inDebian(
        DEBIAN_13,
        node,
        (run) => run("test/kit/setup/ensure-packages.mjs", "redis-server", "openssl", "python3-websockets") && run(...VITEST, ...ON_UWS),
      ),
    ),
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in rows));
if (unknown.length > 0) {
  process.stderr.write(`there is no row ${unknown.join(", ")}; there are ${Object.keys(rows).join(", ")}\n`);
  process.exit(2);
}
const chosen = Object.entries(rows).filter(([name]) => asked.length === 0 || asked.includes(name));
if (chosen.some(([name]) => name === POSTGRES_ROW) && !existsSync(POSTGRES_15)) {
  process.stderr.write(`PostgreSQL 15 is not at ${POSTGRES_15}: install it (Debian: apt-get install postgresql-15) and run this again.\n`);
  process.exit(1);
}
const results = chosen.map(([name, run]) => {
  process.stdout.write(`\n== ${name}\n`);
  return [name, run()];
});
for (const [name, passed] of results) process.stdout.write(`${passed ? "passed" : "FAILED"}  ${name}\n`);
process.exit(results.every(([, passed]) => passed) ? 0 : 1);

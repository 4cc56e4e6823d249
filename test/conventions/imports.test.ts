// Sees each rule of imports.cjs red once, on a planted tree, and the permitted neighbours of each rule green: a rule that cannot fire protects nothing.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const RULES = join(ROOT, "test/conventions/imports.cjs");
const FOLDERS = ["server", "protocol", "agent-sim", "prisma", "test"];

const Rules = z.object({ forbidden: z.array(z.object({ name: z.string() })) });
const ruleNames = Rules.parse(createRequire(import.meta.url)(RULES)).forbidden.map(({ name }) => name);

/** Each breaks one rule: the file, what it says, and the rule that must speak up. */
const GUILTY: readonly (readonly [rule: string, file: string, text: string])[] = [
  ["protocol-is-the-floor", "protocol/groups/a.ts", 'import { clock } from "../../server/core/clock.ts"; export const a = clock;'],
  ["core-speaks-protocol", "server/core/b.ts", 'import { db } from "../platform/db.ts"; export const b = db;'],
  ["platform-knows-no-domain", "server/platform/c.ts", 'import type { Room } from "../features/one/index.ts"; export type C = Room;'],
  ["platform-knows-no-domain", "server/platform/c2.ts", 'import { group } from "../../protocol/groups/group.ts"; export const c = group;'],
  ["gateway-knows-no-feature", "server/gateway/d.ts", 'import type { Room } from "../features/one/index.ts"; export type D = Room;'],
  ["gateway-knows-no-feature", "server/gateway/d2.ts", 'import type { Db } from "../platform/db.ts"; export type D = Db;'],
  ["features-stand-on-core", "server/features/one/e.ts", 'import { rest } from "../../gateway/rest.ts"; export const e = rest;'],
  ["features-stand-on-core", "server/features/one/e2.ts", 'import { version } from "../../version.ts"; export const e = version;'],
  ["features-know-no-gateway", "server/features/kit.ts", 'import { rest } from "../gateway/rest.ts"; export const e = rest;'],
  ["settings-come-by-hand", "server/gateway/e3.ts", 'import type { Config } from "../config.ts"; export type E = Config;'],
  ["features-are-private", "server/features/one/e4.ts", 'import type { Features } from "../index.ts"; export type E = Features;'],
  ["agent-sim-sees-only-protocol", "agent-sim/f.ts", 'import type { Db } from "../server/platform/db.ts"; export type F = Db;'],
  ["agent-knows-no-fleet", "agent-sim/agent/f2.ts", 'import { crew } from "../fleet/agent-group.ts"; export const f = crew;'],
  ["fleet-knows-no-command-line", "agent-sim/fleet/f3.ts", 'import { main } from "../main.ts"; export const f = main;'],
  ["agent-comes-by-its-index", "agent-sim/fleet/f4.ts", 'import type { Agent } from "../agent/agent.ts"; export type F = Agent;'],
  ["agent-comes-by-its-index", "test/flows/f5.test.ts", 'import { agent } from "../../agent-sim/agent/agent.ts"; export const f = agent;'],
  ["agent-sim-depends-on-ws-and-zod", "agent-sim/fleet/f6.ts", 'import { initTRPC } from "@trpc/server"; export const f = initTRPC;'],
  ["features-are-private", "server/features/one/g.ts", 'import type { Row } from "../two/store.ts"; export type G = Row;'],
  ["features-name-each-other-as-types", "server/features/one/h.ts", 'import { room } from "../two/index.ts"; export const h = room;'],
  ["platform-comes-by-hand", "server/features/one/i.ts", 'import { db } from "../../platform/db.ts"; export const i = db;'],
  ["one-door-to-postgres", "server/features/one/j.ts", 'import type { Client } from "../../../prisma/generated/client.ts"; export type J = Client;'],
  ["one-door-to-uws", "server/app.ts", 'import type { TemplatedApp } from "uWebSockets.js"; export type K = TemplatedApp;'],
  ["one-door-to-uws", "server/gateway/k2.ts", 'import { App } from "uWebSockets.js"; export const k = App;'],
  ["one-door-to-uws", "server/gateway/k3.ts", 'export const k = () => import("uws-pack");'],
  ["protocol-depends-on-zod", "protocol/kit/l.ts", 'import { WebSocket } from "ws"; export const l = WebSocket;'],
  ["client-carries-no-contract", "protocol/client/contract.ts", 'import { group } from "../index.ts"; export const l2 = group;'],
  ["client-carries-no-contract", "protocol/client/router.ts", 'import { z } from "zod"; export const l3 = z;'],
  ["traces-load-when-wanted", "server/m0.ts", 'import { openTracing } from "./platform/tracing.ts"; export const m = openTracing;'],
  ["nothing-imports-tests", "server/m.ts", 'import { world } from "../test/kit/world.ts"; export const m = world;'],
  ["no-cycles", "server/core/n.ts", 'import { o } from "./o.ts"; export const n = () => o;'],
];

/** What the guilty point at, and the neighbours that are permitted. */
const INNOCENT: Readonly<Record<string, string>> = {
  "protocol/index.ts": 'export { group, type R } from "./groups/group.ts";',
  "protocol/groups/group.ts": 'import { z } from "zod"; import type { Router } from "@trpc/server"; export const group = z.object({}); export type R = Router;',
  "protocol/client/index.ts":
    'import { createTRPCClient } from "@trpc/client"; import type { R } from "../index.ts"; export const client = createTRPCClient; export type Client = R;',
  "server/core/clock.ts": 'import { group } from "../../protocol/index.ts"; export const clock = group;',
  "server/core/o.ts": 'import { n } from "./n.ts"; export const o = () => n;',
  "server/core/p.ts": 'import type { Q } from "./q.ts"; export interface P { readonly q: Q }',
  "server/core/q.ts": 'import type { P } from "./p.ts"; export interface Q { readonly p: P }',
  "server/core/database.ts": 'import type { Client } from "../../prisma/generated/client.ts"; export type Clients = Client;',
  "server/platform/db.ts":
    'import type { Clients } from "../core/database.ts"; import { clock } from "../core/clock.ts"; export const db = clock; export type Db = Clients;',
  "server/platform/db-errors.ts": "export const isUniqueViolation = () => true;",
  "server/platform/tracing.ts": "export const openTracing = () => null; export type Tracing = null;",
  "server/traces.ts":
    'import type { Tracing } from "./platform/tracing.ts"; export const open = (): Promise<Tracing> => import("./platform/tracing.ts").then((it) => it.openTracing());',
  "server/gateway/rest.ts": 'import { clock } from "../core/clock.ts"; export const rest = clock;',
  "server/gateway/uws/listen.ts": 'import { App } from "uWebSockets.js"; export const listen = App;',
  "server/config.ts": "export type Config = object;",
  "server/version.ts": 'export const version = "1";',
  "server/gateway/transports.ts": 'import type { Config } from "../config.ts"; export type Transports = Config;',
  "server/features/index.ts":
    'import { row } from "./two/index.ts"; import { db } from "../platform/db.ts"; import type { Config } from "../config.ts"; import { version } from "../version.ts"; export const features = [row, db, version]; export type Features = Config;',
  "server/features/one/index.ts":
    'import type { Room as Two } from "../two/index.ts"; import type { Db } from "../../platform/db.ts"; export type Room = Two & Db;',
  "server/features/two/index.ts": 'import { row } from "./store.ts"; export const room = row; export type Room = typeof row;',
  "server/features/two/store.ts":
    'import { isUniqueViolation } from "../../platform/db-errors.ts"; import type { Client } from "../../../prisma/generated/client.ts"; export const row = isUniqueViolation; export type Row = Client;',
  "server/features/two/store/rows.ts": 'import type { Client } from "../../../../prisma/generated/client.ts"; export type Rows = Client;',
  "server/main.ts": 'import { row } from "./features/two/index.ts"; import { rest } from "./gateway/rest.ts"; export const main = [row, rest];',
  "agent-sim/agent/agent.ts":
    'import { group } from "../../protocol/index.ts"; import { WebSocket } from "ws"; export const agent = [group, WebSocket]; export type Agent = typeof agent;',
  "agent-sim/agent/index.ts": 'export { type Agent, agent } from "./agent.ts";',
  "agent-sim/fleet/agent-group.ts": 'import { agent } from "../agent/index.ts"; import { z } from "zod"; export const crew = [agent, z];',
  "agent-sim/main.ts": 'import { agent } from "./agent/index.ts"; import { crew } from "./fleet/agent-group.ts"; export const main = [agent, crew];',
  "test/agent-sim/agent.test.ts": 'import { agent } from "../../agent-sim/agent/agent.ts"; export const test = agent;',
  "prisma/generated/client.ts": "export type Client = object;",
  "test/kit/world.ts": 'import { main } from "../../server/main.ts"; export const world = main;',
};

const DEPENDENCIES = { zod: "*", "uWebSockets.js": "npm:uws-pack@20.0.8", ws: "*", "@trpc/client": "*", "@trpc/server": "*" };

/** Packages as they lie in node_modules; only their entrance is needed. uWebSockets.js comes whole, for its layout is what the rule must know. */
const plantPackages = async (root: string): Promise<void> => {
  for (const name of ["zod", "ws", "@trpc/client", "@trpc/server", "uws-pack"]) {
    const folder = join(root, "node_modules", name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "package.json"), JSON.stringify({ name, version: "1.0.0", type: "module", exports: "./index.js" }));
    await writeFile(join(folder, "index.js"), "export const z = {}, WebSocket = {};");
  }
  await cp(join(ROOT, "node_modules/uWebSockets.js/package.json"), join(root, "node_modules/uWebSockets.js/package.json"));
  for (const entry of ["index.mjs", "index.d.mts"]) {
    await cp(join(ROOT, "node_modules/uWebSockets.js/dist", entry), join(root, "node_modules/uWebSockets.js/dist", entry));
  }
};

const Report = z.object({ summary: z.object({ violations: z.array(z.object({ from: z.string(), rule: z.object({ name: z.string() }) })) }) });

const cruise = async (root: string): Promise<z.infer<typeof Report>> => {
  const command = join(ROOT, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs");
  const child = spawn(process.execPath, [command, "--config", RULES, "--output-type", "json", ...FOLDERS], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const read = { out: "", complaints: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    read.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    read.complaints += text;
  });
  await once(child, "close");
  if (!read.out.startsWith("{")) throw new Error(`the import check did not run: ${read.complaints}`);
  return Report.parse(JSON.parse(read.out));
};

describe("the rules of imports", () => {
  let root = "";
  let violations: readonly { readonly from: string; readonly rule: { readonly name: string } }[] = [];

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "mooring-imports-"));
    await plantPackages(root);
    await cp(join(ROOT, "tsconfig.json"), join(root, "tsconfig.json"));
    await writeFile(join(root, "package.json"), JSON.stringify({ name: "planted", type: "module", dependencies: DEPENDENCIES }));
    for (const [file, text] of [...Object.entries(INNOCENT), ...GUILTY.map(([, file, text]) => [file, text] as const)]) {
      await mkdir(dirname(join(root, file)), { recursive: true });
      await writeFile(join(root, file), text);
    }
    ({ violations } = (await cruise(root)).summary);
  }, 60_000);
  afterAll(() => rm(root, { recursive: true, force: true }));

  test.each(GUILTY)("%s speaks up at %s", (rule, file) => {
    expect(violations.filter(({ from }) => from === file).map(({ rule: { name } }) => name)).toContain(rule);
  });

  test("every rule is seen red", () => {
    expect([...new Set(GUILTY.map(([rule]) => rule))].sort()).toEqual([...ruleNames].sort());
  });

  test("what is permitted stays green: types of other rooms and of platform, cycles of types, each door's own library", () => {
    // The second half of the planted cycle is as guilty as the first.
    const innocent = Object.keys(INNOCENT).filter((file) => file !== "server/core/o.ts");
    expect(violations.filter(({ from }) => innocent.includes(from)).map(({ from, rule: { name } }) => `${name}: ${from}`)).toEqual([]);
  });
});

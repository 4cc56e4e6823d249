// Plants a tree in which each rule of imports.cjs fails once, next to imports that it permits. A rule that cannot fail protects nothing.
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
const FOLDERS = ["server", "protocol", "agent-sim", "portal", "prisma", "test"];

const Rules = z.object({ forbidden: z.array(z.object({ name: z.string() })) });
const ruleNames = Rules.parse(createRequire(import.meta.url)(RULES)).forbidden.map(({ name }) => name);

/** Files that each break one rule. */
const GUILTY: readonly (readonly [rule: string, file: string, text: string])[] = [
  ["protocol-imports-nothing-of-ours", "protocol/groups/a.ts", 'import { clock } from "../../server/core/clock.ts"; export const a = clock;'],
  ["core-imports-only-protocol", "server/core/b.ts", 'import { db } from "../platform/database/db.ts"; export const b = db;'],
  ["platform-imports-no-feature", "server/platform/c.ts", 'import type { Feature } from "../features/one/index.ts"; export type C = Feature;'],
  ["platform-imports-no-feature", "server/platform/c2.ts", 'import { group } from "../../protocol/groups/group.ts"; export const c = group;'],
  ["gateway-imports-only-core-and-protocol", "server/gateway/d.ts", 'import type { Feature } from "../features/one/index.ts"; export type D = Feature;'],
  ["gateway-imports-only-core-and-protocol", "server/gateway/d2.ts", 'import type { Db } from "../platform/database/db.ts"; export type D = Db;'],
  ["edge-imports-core-and-gateway", "server/edge/d3.ts", 'import type { Db } from "../platform/database/db.ts"; export type D = Db;'],
  ["features-import-no-gateway", "server/features/one/e.ts", 'import { rest } from "../../gateway/rest/rest.ts"; export const e = rest;'],
  ["features-import-no-gateway", "server/features/one/e2.ts", 'import { version } from "../../version.ts"; export const e = version;'],
  ["features-import-no-gateway", "server/features/kit.ts", 'import { rest } from "../gateway/rest/rest.ts"; export const e = rest;'],
  ["wiring-imports-no-gateway", "server/wiring/kit.ts", 'import { rest } from "../gateway/rest/rest.ts"; export const e = rest;'],
  ["settings-are-injected", "server/wiring/e5.ts", 'import type { Config } from "../config.ts"; export type E = Config;'],
  ["settings-are-injected", "server/gateway/e3.ts", 'import type { Config } from "../config.ts"; export type E = Config;'],
  ["features-import-no-gateway", "server/features/one/e4.ts", 'import type { Features } from "../../wiring/index.ts"; export type E = Features;'],
  ["agent-sim-imports-only-protocol", "agent-sim/f.ts", 'import type { Db } from "../server/platform/database/db.ts"; export type F = Db;'],
  ["hosts-import-no-fleet", "agent-sim/host/f6.ts", 'import { crew } from "../fleet/agent-group.ts"; export const f = crew;'],
  ["children-know-no-host", "agent-sim/children/f7.ts", 'import { crew } from "../fleet/agent-group.ts"; export const f = crew;'],
  ["agent-imports-no-fleet", "agent-sim/agent/f2.ts", 'import { crew } from "../fleet/agent-group.ts"; export const f = crew;'],
  ["fleet-imports-no-command-line", "agent-sim/fleet/f3.ts", 'import { main } from "../main.ts"; export const f = main;'],
  ["agent-is-imported-through-its-index", "agent-sim/fleet/f4.ts", 'import type { Agent } from "../agent/agent.ts"; export type F = Agent;'],
  ["agent-is-imported-through-its-index", "test/flows/f5.test.ts", 'import { agent } from "../../agent-sim/agent/agent.ts"; export const f = agent;'],
  ["one-module-starts-programs", "agent-sim/host/f8.ts", 'import { spawn } from "node:child_process"; export const f = spawn;'],
  ["one-module-starts-programs", "agent-sim/f9.ts", 'import { createInterface } from "node:readline"; export const f = createInterface;'],
  ["one-module-starts-programs", "server/platform/f10.ts", 'import { execFile } from "child_process"; export const f = execFile;'],
  ["one-module-starts-programs", "server/f11.ts", 'export const f = () => import("node:child_process");'],
  ["one-module-starts-programs", "protocol/kit/f12.ts", 'import { spawnSync } from "node:child_process"; export const f = spawnSync;'],
  ["agent-sim-needs-only-ws-and-zod", "agent-sim/fleet/f6.ts", 'import { initTRPC } from "@trpc/server"; export const f = initTRPC;'],
  ["features-import-only-each-others-index", "server/features/one/g.ts", 'import type { Row } from "../two/store.ts"; export type G = Row;'],
  ["features-import-each-other-as-types", "server/features/one/h.ts", 'import { feature } from "../two/index.ts"; export const h = feature;'],
  ["platform-is-injected", "server/features/one/i.ts", 'import { db } from "../../platform/database/db.ts"; export const i = db;'],
  ["only-stores-touch-prisma", "server/features/one/j.ts", 'import type { Client } from "../../../prisma/generated/client.ts"; export type J = Client;'],
  ["only-gateway-uws-touches-uws", "server/app.ts", 'import type { TemplatedApp } from "uWebSockets.js"; export type K = TemplatedApp;'],
  ["only-gateway-uws-touches-uws", "server/gateway/k2.ts", 'import { App } from "uWebSockets.js"; export const k = App;'],
  ["only-gateway-uws-touches-uws", "server/gateway/k3.ts", 'export const k = () => import("uws-pack");'],
  ["only-gateway-uws-touches-uws", "server/gateway/k4.ts", 'export const k = () => import("uWebSockets.js-newer");'],
  ["protocol-needs-only-zod", "protocol/kit/l.ts", 'import { WebSocket } from "ws"; export const l = WebSocket;'],
  ["client-bundles-no-contract", "protocol/client/contract.ts", 'import { group } from "../index.ts"; export const l2 = group;'],
  ["client-bundles-no-contract", "protocol/client/router.ts", 'import { z } from "zod"; export const l3 = z;'],
  ["tracing-loads-on-demand", "server/m0.ts", 'import { openTracing } from "./platform/telemetry/tracing.ts"; export const m = openTracing;'],
  ["portal-imports-only-protocol", "portal/src/app/a1.tsx", 'import { version } from "../../../server/version.ts"; export const a = version;'],
  ["only-tests-import-the-agent-kit", "server/a3.ts", 'import { kit } from "../protocol/agent-kit/kit.ts"; export const a = kit;'],
  ["only-tests-import-portal", "server/a2.ts", 'import { part } from "../portal/src/ui/part.tsx"; export const a = part;'],
  ["portal-imports-the-contract-as-types", "portal/src/api/a3.ts", 'import { group } from "../../../protocol/index.ts"; export const a = group;'],
  ["what-portals-load-is-light", "protocol/kit/command-status.ts", 'import { group } from "../groups/group.ts"; export const isOpen = () => group;'],
  ["portal-ui-imports-only-ui", "portal/src/ui/a4.tsx", 'import { call } from "../api/call.ts"; export const a = call;'],
  ["portal-ui-imports-only-ui", "portal/src/ui/a5.tsx", 'import type { Screen } from "../screens/one/one.tsx"; export type A = Screen;'],
  ["portal-parts-import-no-screen", "portal/src/parts/a8.tsx", 'import type { Screen } from "../screens/one/one.tsx"; export type A = Screen;'],
  ["screens-do-not-import-each-other", "portal/src/screens/two/a6.tsx", 'import type { Screen } from "../one/one.tsx"; export type A = Screen;'],
  ["nothing-imports-tests", "portal/src/app/a7.tsx", 'import { world } from "../../../test/kit/gateway/world.ts"; export const a = world;'],
  ["nothing-imports-tests", "server/m.ts", 'import { world } from "../test/kit/gateway/world.ts"; export const m = world;'],
  ["no-cycles", "server/core/n.ts", 'import { o } from "./o.ts"; export const n = () => o;'],
  ["no-cycles", "server/core/p.ts", 'import type { Q } from "./q.ts"; export interface P { readonly q: Q }'],
];

/** The files that the guilty import, and files with permitted imports. */
const INNOCENT: Readonly<Record<string, string>> = {
  "protocol/index.ts": 'export { group, type R } from "./groups/group.ts";',
  "protocol/groups/group.ts": 'import { z } from "zod"; import type { Router } from "@trpc/server"; export const group = z.object({}); export type R = Router;',
  "protocol/client/index.ts":
    'import { createTRPCClient } from "@trpc/client"; import type { R } from "../index.ts"; export const client = createTRPCClient; export type Client = R;',
  "portal/src/api/call.ts":
    'import type { R } from "../../../protocol/index.ts"; import { client } from "../../../protocol/client/index.ts"; export const call = client; export type Call = R;',
  "protocol/agent-kit/kit.ts": "export const kit = 1;",
  "portal/src/ui/part.tsx": "export const part = <i>part</i>;",
  "portal/src/screens/one/one.tsx":
    'import { call } from "../../api/call.ts"; import { part } from "../../ui/part.tsx"; import { words } from "./words.ts"; export const one = [call, part, words]; export type Screen = typeof one;',
  "portal/src/screens/one/words.ts":
    'import type { isOpen } from "../../../../protocol/kit/command-status.ts"; export const words: typeof isOpen | null = null;',
  "portal/src/app/main.tsx": 'import { one } from "../screens/one/one.tsx"; export const main = one;',
  "test/portal/part.test.ts": 'import { part } from "../../portal/src/ui/part.tsx"; export const test = part;',
  "server/core/clock.ts": 'import { group } from "../../protocol/index.ts"; export const clock = group;',
  "server/core/o.ts": 'import { n } from "./n.ts"; export const o = () => n;',
  "server/core/q.ts": 'import type { P } from "./p.ts"; export interface Q { readonly p: P }',
  "server/core/database.ts": 'import type { Client } from "../../prisma/generated/client.ts"; export type Clients = Client;',
  "server/platform/database/db.ts":
    'import type { Clients } from "../../core/database.ts"; import { clock } from "../../core/clock.ts"; export const db = clock; export type Db = Clients;',
  "server/platform/database/db-errors.ts": "export const isUniqueViolation = () => true;",
  "server/platform/telemetry/tracing.ts": "export const openTracing = () => null; export type Tracing = null;",
  "server/traces.ts":
    'import type { Tracing } from "./platform/telemetry/tracing.ts"; export const open = (): Promise<Tracing> => import("./platform/telemetry/tracing.ts").then((it) => it.openTracing());',
  "server/gateway/rest/rest.ts": 'import { clock } from "../../core/clock.ts"; export const rest = clock;',
  "server/gateway/uws/listen.ts": 'import { App } from "uWebSockets.js"; export const listen = App;',
  "server/config.ts": "export type Config = object;",
  "server/version.ts": 'export const version = "1";',
  "server/gateway/transports.ts": 'import type { Config } from "../config.ts"; export type Transports = Config;',
  "server/wiring/deps.ts": 'import type { Config } from "../config.ts"; export type Deps = Config;',
  "server/wiring/index.ts":
    'import { row } from "../features/two/index.ts"; import { db } from "../platform/database/db.ts"; import type { Deps } from "./deps.ts"; import { version } from "../version.ts"; export const features = [row, db, version]; export type Features = Deps;',
  "server/features/one/index.ts":
    'import type { Feature as Two } from "../two/index.ts"; import type { Db } from "../../platform/database/db.ts"; export type Feature = Two & Db;',
  "server/features/two/index.ts": 'import { row } from "./store.ts"; export const feature = row; export type Feature = typeof row;',
  "server/features/two/store.ts":
    'import { isUniqueViolation } from "../../platform/database/db-errors.ts"; import type { Client } from "../../../prisma/generated/client.ts"; export const row = isUniqueViolation; export type Row = Client;',
  "server/features/two/store/rows.ts": 'import type { Client } from "../../../../prisma/generated/client.ts"; export type Rows = Client;',
  "protocol/kit/programs/program.ts": 'import { spawn } from "node:child_process"; export const startProgram = spawn;',
  "server/main.ts": 'import { row } from "./features/two/index.ts"; import { rest } from "./gateway/rest/rest.ts"; export const main = [row, rest];',
  "agent-sim/agent/agent.ts":
    'import { group } from "../../protocol/index.ts"; import { WebSocket } from "ws"; export const agent = [group, WebSocket]; export type Agent = typeof agent;',
  "agent-sim/agent/index.ts": 'export { type Agent, agent } from "./agent.ts";',
  "agent-sim/fleet/agent-group.ts": 'import { agent } from "../agent/index.ts"; import { z } from "zod"; export const crew = [agent, z];',
  "agent-sim/main.ts": 'import { agent } from "./agent/index.ts"; import { crew } from "./fleet/agent-group.ts"; export const main = [agent, crew];',
  "test/agent-sim/agent.test.ts": 'import { agent } from "../../agent-sim/agent/agent.ts"; export const test = agent;',
  "prisma/generated/client.ts": "export type Client = object;",
  "test/kit/gateway/world.ts": 'import { main } from "../../../server/main.ts"; export const world = main;',
};

const DEPENDENCIES = { zod: "*", "uWebSockets.js": "npm:uws-pack@20.0.8", "uWebSockets.js-newer": "*", ws: "*", "@trpc/client": "*", "@trpc/server": "*" };

/** Stubs in node_modules. uWebSockets.js keeps its real layout, because its rule matches paths within the package. */
const plantPackages = async (root: string): Promise<void> => {
  for (const name of ["zod", "ws", "@trpc/client", "@trpc/server", "uws-pack", "uWebSockets.js-newer"]) {
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
  const read = { out: "", errors: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    read.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    read.errors += text;
  });
  await once(child, "close");
  if (!read.out.startsWith("{")) throw new Error(`dependency-cruiser did not run: ${read.errors}`);
  return Report.parse(JSON.parse(read.out));
};

describe("import rules", () => {
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

  test.each(GUILTY)("%s fails for %s", (rule, file) => {
    expect(violations.filter(({ from }) => from === file).map(({ rule: { name } }) => name)).toContain(rule);
  });

  test("every rule has a file that breaks it", () => {
    expect([...new Set(GUILTY.map(([rule]) => rule))].sort()).toEqual([...ruleNames].sort());
  });

  test("permitted imports pass: types of other features and of platform, cycles of types, a library in the folder that wraps it", () => {
    // `o` is the other half of the planted cycle.
    const circles = ["server/core/o.ts", "server/core/q.ts"];
    const innocent = Object.keys(INNOCENT).filter((file) => !circles.includes(file));
    expect(violations.filter(({ from }) => innocent.includes(from)).map(({ from, rule: { name } }) => `${name}: ${from}`)).toEqual([]);
  });
});

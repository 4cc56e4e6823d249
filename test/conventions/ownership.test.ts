// A table belongs to the feature that its schema file names. Other features call the owner's exports and leave the table alone.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const SCHEMA = "prisma/schema";
/** Owners of the schema files that are not named after one. */
const OWNERS: Readonly<Record<string, string>> = {
  nodes: "admin",
  gateway: "platform",
  outbox: "platform",
  mails: "platform",
  metrics: "tenants",
  many: "core",
};
/** Owners of models in another owner's file. */
const MODEL_OWNERS: Readonly<Record<string, string>> = {
  StreamTicket: "general",
  Installation: "platform",
  BackupDestination: "backup-destinations",
  BackupRepository: "backup-destinations",
};

/** Statements that use another feature's table: they run for every command or connection, and a second statement would double their cost. */
const EXCEPTIONS: Readonly<Record<string, { readonly tables: readonly string[]; readonly reason: string }>> = {
  "server/core/people/actors.ts": {
    tables: ["api_keys", "devices", "memberships", "users"],
    reason: "one read names all who appear on a page, whatever they are",
  },
  "server/features/backup-destinations/store/repositories.ts": { tables: ["devices"], reason: "the claim of what is to be pruned skips devices that are gone" },
  "server/features/backup-policies/store/policies.ts": { tables: ["tenants"], reason: "the claim of due policies skips those of suspended tenants" },
  "server/features/backup-policies/store/runs.ts": { tables: ["devices"], reason: "apps of devices that are away wait, and are not read every few seconds" },
  "server/features/volumes/store.ts": {
    tables: ["apps", "devices", "tenants"],
    reason: "finds in one statement, over all tenants, the few devices that nobody has looked through since a day",
  },
  "server/core/many/work-rows.ts": { tables: ["tenants"], reason: "the claim of a step skips the work of suspended tenants" },
  "server/platform/keys/key-rotation.ts": { tables: ["gateway_nodes"], reason: "a rotation must not begin while a node seals with another key" },
  "server/features/alerts/store/backup-values.ts": {
    tables: ["apps", "backup_policies", "backup_repositories", "backup_run_items", "backup_runs", "backups", "devices"],
    reason: "the values of backups for all rules, for the statements of observe.ts",
  },
  "server/features/alerts/store/observe.ts": {
    tables: [
      "apps",
      "command_queue",
      "commands",
      "cost_budget_notices",
      "cost_budgets",
      "custom_domains",
      "device_presence",
      "devices",
      "fleets",
      "rollouts",
      "tenants",
      "tunnels",
    ],
    reason: "one statement looks at all devices for all rules; through other features it would be one per tenant or more",
  },
  "server/features/alerts/store/preview.ts": {
    tables: ["device_metrics", "devices", "fleets"],
    reason: "finds in one statement, within a rule's scope, the few devices that came near the threshold",
  },
  "server/features/alerts/store/rules.ts": { tables: ["tenants"], reason: "finds the tenants that have not got their first rules" },
  "server/features/overview/store.ts": {
    tables: ["apps", "backups", "commands", "devices", "tenants"],
    reason: "one statement counts for all tenants; through the features it would be several for each tenant",
  },
  "server/features/apps/store/installed.ts": {
    tables: ["devices"],
    reason: "names the devices of the catalogue's apps, and leaves out those that the caller does not see",
  },
  "server/features/costs/store/ledger.ts": {
    tables: ["apps", "device_metrics", "devices", "metric_progress", "tenants"],
    reason: "a day of a thousand devices is read in one statement, with what was measured of them and what they ran",
  },
  "server/features/costs/store/names.ts": {
    tables: ["apps", "deployments", "devices", "fleets"],
    reason: "rows of an allocation are grouped and named by what has been removed, too, which its feature no longer shows",
  },
  "server/features/costs/store/reports.ts": { tables: ["devices"], reason: "a forecast leaves out the devices that are gone" },
  "server/features/commands/store/list.ts": { tables: ["devices"], reason: "each row of the tenant's commands shows the name of its device" },
  "server/features/commands/store/create.ts": {
    tables: ["device_presence", "devices"],
    reason: "one statement numbers the new commands in the device's row and checks that the device accepts them",
  },
  "server/features/commands/store/claim.ts": { tables: ["device_presence"], reason: "the epoch of the claiming session fences the claim" },
  "server/features/commands/store/lock.ts": { tables: ["device_presence"], reason: "rules about a command ask which session of its device is live" },
  "server/features/commands/store/read.ts": { tables: ["device_presence"], reason: "the sweep finds connected devices with waiting commands" },
  "server/features/commands/store/stuck.ts": { tables: ["device_presence"], reason: "a command of an absent device is not stuck" },
  "server/features/devices/store/agents.ts": { tables: ["tenants"], reason: "authentication must refuse a suspended tenant at once" },
  "server/features/devices/store/sweep.ts": { tables: ["tenant_settings"], reason: "the tenant's settings say how long the sweep leaves a silent device" },
  "server/features/rollouts/store/devices.ts": {
    tables: ["commands_now", "devices"],
    reason: "a page of a rollout's devices shows their names and how far their orders are",
  },
  "server/features/rollouts/store/freeze.ts": { tables: ["apps", "devices"], reason: "one statement freezes ten thousand devices with what they run" },
  "server/features/rollouts/store/members.ts": {
    tables: ["apps", "command_queue", "commands", "device_presence", "devices"],
    reason: "a step reads by primary keys, in one statement, how the orders of up to 500 devices have ended and what they run now",
  },
  "server/features/tenants/store/any-tenant.ts": { tables: ["users"], reason: "operators see members and those who have signed in as one list" },
  "server/features/tenants/store/metrics.ts": {
    tables: ["device_presence"],
    reason: "the roll-up reads every device's newest report in the statement that stores it",
  },
  "server/core/rows/event-rows.ts": { tables: ["outbox_dispatches", "outbox_events"], reason: "whoever reads or writes an event does it the same way" },
  "server/core/rows/event-version.ts": { tables: ["outbox_dispatches"], reason: "what a feature reads carries the number of the tenant's last event" },
};

interface Table {
  readonly model: string;
  readonly table: string;
  readonly owner: string;
}

/** Views belong to the owner of their tables too. */
const VIEWS: readonly Table[] = [{ model: "", table: "commands_now", owner: "commands" }];

const tables: readonly Table[] = readdirSync(SCHEMA)
  .flatMap((file) => {
    const text = readFileSync(join(SCHEMA, file), "utf8");
    const name = file.replace(".prisma", "");
    return [...text.matchAll(/^model (\w+) \{[\s\S]*?@@map\("(\w+)"\)/gm)].map(([, model = "", table = ""]) => ({
      model: model.charAt(0).toLowerCase() + model.slice(1),
      table,
      owner: MODEL_OWNERS[model] ?? OWNERS[name] ?? name,
    }));
  })
  .concat(VIEWS);

const withoutComments = (source: string): string => source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "");
const SQL = new RegExp(`\\b(?:from|join|update|into|lock|using)\\s+(?:only\\s+)?(${tables.map(({ table }) => table).join("|")})\\b`, "gi");
const CLIENT = /\.(?:for\([^()]*\)|system\b)/g;
const CALL = /\.(?:for\([^()]*\)|system)\s*\.(\w+)/g;
const TAKEN = /\{([^{}]*)\} = \w+\.(?:for\([^()]*\)|system\b)/g;

/** The tables that a file names in SQL or in Prisma calls. */
const tablesIn = (source: string): ReadonlySet<string> => {
  const code = withoutComments(source);
  const models = [...[...code.matchAll(CALL)].map(([, model = ""]) => model), ...[...code.matchAll(TAKEN)].flatMap(([, taken = ""]) => taken.split(","))];
  const ofModels = models.map((model) => tables.find((each) => each.model === model.trim())?.table ?? `unknown model ${model.trim()}`);
  return new Set([...[...code.matchAll(SQL)].map(([, table = ""]) => table), ...ofModels]);
};

/** How many uses of a client hide their model from this test. */
const hiddenIn = (source: string): number => {
  const code = withoutComments(source);
  const count = (pattern: RegExp): number => [...code.matchAll(pattern)].length;
  return count(CLIENT) - count(CALL) - count(TAKEN);
};

const ownerOf = (file: string): string => /^server\/features\/([^/]+)\//.exec(file)?.[1] ?? /^server\/([^/]+)\//.exec(file)?.[1] ?? "server";
const foreignIn = (file: string, source: string): readonly string[] =>
  [...tablesIn(source)].filter((name) => tables.find(({ table }) => table === name)?.owner !== ownerOf(file)).sort();

const files = (readdirSync("server", { recursive: true }) as string[]).filter((file) => file.endsWith(".ts")).map((file) => join("server", file));
const foreign = new Map(files.map((file) => [file, foreignIn(file, readFileSync(file, "utf8"))] as const).filter(([, names]) => names.length > 0));

test("each table has an owner that exists", () => {
  const owners = new Set(readdirSync("server/features"));
  expect(tables.length).toBeGreaterThan(15);
  expect(tables.filter(({ owner }) => owner !== "platform" && owner !== "core" && !owners.has(owner))).toEqual([]);
});

test("a feature uses only its own tables, apart from the exceptions, and every exception is needed", () => {
  expect(Object.fromEntries(foreign)).toEqual(Object.fromEntries(Object.entries(EXCEPTIONS).map(([file, each]) => [file, [...each.tables].sort()])));
});

test("each use of a Prisma client names its model in the same expression", () => {
  // They create and declare the clients, or go through all models.
  const makers = new Set(["server/platform/database/tenant-client.ts", "server/platform/database/delete-tenant.ts", "server/core/database.ts"]);
  expect(files.filter((file) => !makers.has(file) && hiddenIn(readFileSync(file, "utf8")) !== 0)).toEqual([]);
});

test("foreign tables are found in SQL, in calls and in destructured clients, but not in comments", () => {
  const found = (source: string): readonly string[] => foreignIn("server/features/pairing/store.ts", source);
  expect(found('sql.query("select 1 from devices d join tenants t on true")')).toEqual(["devices", "tenants"]);
  expect(found('sql.query("select 1 from commands_now")')).toEqual(["commands_now"]);
  expect(found("db.for(scope).apiKey.count()")).toEqual(["api_keys"]);
  expect(found("db.system\n  .gatewayNode.findMany()")).toEqual(["gateway_nodes"]);
  expect(found("const { device, pairing } = tx.for(scope);")).toEqual(["devices"]);
  expect(found("// taken from devices\n/* update tenants */ db.for(scope).pairing.count()")).toEqual([]);
  expect(hiddenIn("const all = db.system; all.device.count()")).toBe(1);
});

// The command line of an installation: credentials and configuration. Works while the gateway runs and while it does not.
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { isRole, type Role } from "../protocol/index.ts";
import type { BootstrapRequest, openBootstrap } from "./bootstrap.ts";
import { type Config, LOCAL_USER, readConfig } from "./config.ts";
import { describeConfig, settingsTable } from "./config-table.ts";
import type { Clock } from "./core/clock.ts";
import { ConfigError } from "./core/errors.ts";
import { createLifecycle, type Lifecycle } from "./core/lifecycle/lifecycle.ts";
import { changeKeyFile, KEY_FILE, newMasterKey } from "./platform/keys/key-files.ts";
import type { KeyProgress } from "./platform/keys/key-rotation.ts";
import { createLog } from "./platform/telemetry/log.ts";

const HELP = `Mooring's command line

  cli bootstrap [--tenant NAME] [--slug SLUG] [--user USERID] [--unlimited] [--json]
      Makes a tenant with an owner (or finds it) and prints credentials for it:
      baseUrl, tenantId, userId, token (bearer, 30 days), apiKey, enrollmentToken.
      Repeating it gives the same tenant and fresh credentials.
      --unlimited lifts rate limits too; plan limits never apply to a tenant made here.

  cli token --user ID [--email ADDRESS] [--tenant ID] [--role viewer|operator|admin|owner] [--ttl SECONDS] [--json]
      Mints a bearer token of the local issuer; --email states an address as verified, so its owner can accept invites to it. With --tenant and --role the user becomes a member with that role.

  cli sign-in [--user ID] [--email ADDRESS] [--tenant ID] [--json]
      Prints a link that signs this person in, in a browser, once, within ten minutes (local issuer). --email states an address as verified, as for
      a token. With --tenant the session works there only.

  cli audit verify [--tenant ID] [--json]
      Checks the audit log of one tenant or of all. Prints the first record of each log that somebody has changed, removed, added or moved, and
      then exits with 1. Keep the printed end of a log elsewhere: it shows later whether an older copy was put back. "-" is the installation's log.

  cli audit export --tenant ID [--format ndjson|csv]
      Writes the whole log to the standard output, oldest record first.

  cli master-key rotate [--json]
      Seals every secret again with MASTER_KEY; MASTER_KEY_OTHER is the former key. Works in batches while the gateway runs, prints how far it is,
      and goes on where it was if it was stopped. Begin once every node seals with the new key: docs/deployment.md, "The master key".

  cli master-key new
      Prints a new key. Without MASTER_KEY it changes the key in DATA_DIR instead; restart the gateway, then rotate.

  cli migrate [--plan] [--json]
      Brings the database to this build's schema, as the first start of the gateway would. --plan says what would run instead: which migrations, on
      which tables, with which locks, and about how long on tables of this size.

  cli after-restore [--repair] [--json]
      Run it once an older dump is in the database: checks key, schema and audit logs, ends all sessions, and lists the keys and members that are back.
      --repair lets every device that is not online pair again for a day. Exits with 1 if a log does not verify.

  cli config [--markdown]
      Prints the effective configuration, secrets masked; --markdown: the table of all settings.

  Settings come from the environment (see cli config); the gateway and this command must see the same ones.
`;

/** What a command reads and writes; a process has it. */
export interface Terminal {
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
  readonly stdout: Writable;
  readonly stderr: Writable;
}
/** A command with its settings. */
interface Call extends Terminal {
  readonly settings: Config;
  readonly args: readonly string[];
}
const DONE = 0;
const FAILED = 1;
const WRONG_USE = 2;

const writeLine = (stream: Writable, text: string): void => void stream.write(`${text}\n`);
const print = ({ stdout }: Terminal, record: object, json: boolean): void =>
  writeLine(
    stdout,
    json
      ? JSON.stringify(record)
      : Object.entries(record)
          .map(([name, value]) => `${name.padEnd(16)} ${String(value)}`)
          .join("\n"),
  );

class UsageError extends Error {}

const config = async ({ settings, args, stdout }: Call): Promise<number> => {
  const { values } = parseArgs({ args: [...args], options: { markdown: { type: "boolean", default: false } } });
  if (values.markdown) writeLine(stdout, settingsTable());
  else for (const { name, value, meaning } of describeConfig(settings)) writeLine(stdout, `${name.padEnd(26)} ${value.padEnd(24)} ${meaning}`);
  return DONE;
};

/** Closes what was opened for one command. */
const closing = async <T>(run: (life: Lifecycle) => Promise<T>): Promise<T> => {
  const life = createLifecycle({ partTimeoutMs: 10_000 });
  try {
    return await run(life);
  } finally {
    await life.close();
  }
};
const withInstallation = <T>({ clock, settings, stderr }: Call, run: (bootstrap: Awaited<ReturnType<typeof openBootstrap>>) => Promise<T>): Promise<T> =>
  closing(async (life) => {
    // Imported here, so help and a mistyped command need not load the whole server.
    const { openBootstrap: open } = await import("./bootstrap.ts");
    const onNotice = (text: string): void => writeLine(stderr, text);
    return run(await open(settings, life, { clock, log: createLog("silent", {}), onNotice }));
  });

const bootstrap = async (call: Call): Promise<number> => {
  const { values } = parseArgs({
    args: [...call.args],
    options: {
      tenant: { type: "string" },
      slug: { type: "string" },
      user: { type: "string" },
      unlimited: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const slug =
    values.slug ??
    (values.tenant === undefined
      ? "home"
      : values.tenant
          .toLowerCase()
          .replace(/[^a-z0-9]+/g, "-")
          .replace(/^-+|-+$/g, "")
          .slice(0, 40));
  if (!/^[a-z0-9](?:[a-z0-9-]{1,38}[a-z0-9])$/.test(slug)) throw new UsageError("--slug must be 3 to 40 of a-z, 0-9 and -, with no - at the ends");
  const request: BootstrapRequest = { name: values.tenant ?? "Home", slug, userId: values.user ?? LOCAL_USER, unlimited: values.unlimited };
  print(call, await withInstallation(call, (installation) => installation.bootstrap(request)), values.json);
  return DONE;
};

const token = async (call: Call): Promise<number> => {
  const { values } = parseArgs({
    args: [...call.args],
    options: {
      user: { type: "string" },
      email: { type: "string" },
      tenant: { type: "string" },
      role: { type: "string" },
      ttl: { type: "string", default: "86400" },
      json: { type: "boolean", default: false },
    },
  });
  const { user, email, tenant, role } = values;
  const ttlSeconds = Number(values.ttl);
  if (user === undefined) throw new UsageError("--user is needed");
  if (role !== undefined && !isRole(role)) throw new UsageError("--role must be viewer, operator, admin or owner");
  if (role !== undefined && tenant === undefined) throw new UsageError("--role needs --tenant");
  if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > 31_536_000) throw new UsageError("--ttl must be 1 to 31536000 seconds");
  const minted = await withInstallation(call, (installation) =>
    installation.mint({
      userId: user,
      ttlSeconds,
      ...(email === undefined ? {} : { email }),
      ...(tenant === undefined ? {} : { tenantId: tenant }),
      ...(role === undefined ? {} : { role: role as Role }),
    }),
  );
  print(call, minted, values.json);
  return DONE;
};

const signIn = async (call: Call): Promise<number> => {
  const { values } = parseArgs({
    args: [...call.args],
    options: {
      user: { type: "string", default: LOCAL_USER },
      email: { type: "string" },
      tenant: { type: "string" },
      json: { type: "boolean", default: false },
    },
  });
  const { user: userId, email, tenant: tenantId, json } = values;
  print(call, await withInstallation(call, (installation) => installation.signInLink({ userId, email, tenantId })), json);
  return DONE;
};

const auditVerify = (call: Call, { tenant, json }: { readonly tenant: string | undefined; readonly json: boolean }): Promise<number> =>
  withInstallation(call, async ({ audit }) => {
    let code = DONE;
    for await (const verdict of audit.verify(tenant)) {
      const { tenantId, isIntact, records, end, broken } = verdict;
      if (!isIntact) code = FAILED;
      if (json) writeLine(call.stdout, JSON.stringify(verdict));
      else if (broken === null) writeLine(call.stdout, `${tenantId}  whole: ${records} records, ends with ${end.sequence} ${end.hash}`);
      else writeLine(call.stdout, `${tenantId}  BROKEN at record ${broken.sequence}${broken.auditId === null ? "" : ` (${broken.auditId})`}: ${broken.reason}`);
    }
    return code;
  });

const audit = async (call: Call): Promise<number> => {
  const [task, ...args] = call.args;
  const { values } = parseArgs({
    args,
    options: { tenant: { type: "string" }, format: { type: "string", default: "ndjson" }, json: { type: "boolean", default: false } },
  });
  const { tenant, format, json } = values;
  if (task === "verify") return auditVerify(call, { tenant, json });
  if (task !== "export") throw new UsageError("say `audit verify` or `audit export`");
  if (tenant === undefined) throw new UsageError("--tenant is needed");
  if (format !== "ndjson" && format !== "csv") throw new UsageError("--format must be ndjson or csv");
  await withInstallation(call, (installation) => pipeline(Readable.from(installation.audit.exportAll(tenant, format)), call.stdout, { end: false }));
  return DONE;
};

/** A restarted gateway seals with the new key at once; the running one would not know it. */
const newKey = async ({ settings, stdout }: Call): Promise<number> => {
  if (settings.MASTER_KEY !== undefined) {
    writeLine(stdout, newMasterKey());
    return DONE;
  }
  await changeKeyFile(settings.DATA_DIR);
  writeLine(stdout, `changed ${KEY_FILE} in ${settings.DATA_DIR}; restart the gateway, then run: cli master-key rotate`);
  return DONE;
};

const masterKey = async (call: Call): Promise<number> => {
  const [task, ...args] = call.args;
  const { values } = parseArgs({ args, options: { json: { type: "boolean", default: false } } });
  if (task === "new") return newKey(call);
  if (task !== "rotate") throw new UsageError("say `master-key rotate` or `master-key new`");
  const onProgress = ({ table, column, resealed }: KeyProgress): void => writeLine(call.stderr, `${table}.${column}: ${resealed} sealed again`);
  const rotated = await withInstallation(call, ({ rotateKey }) => rotateKey(onProgress));
  print(call, rotated, values.json);
  if (rotated.unreadable === 0) return DONE;
  writeLine(call.stderr, `${rotated.unreadable} values open with neither key. Name the key that sealed them in MASTER_KEY_OTHER and run this again`);
  return FAILED;
};

const migrate = async (call: Call): Promise<number> => {
  const { values } = parseArgs({ args: [...call.args], options: { plan: { type: "boolean", default: false }, json: { type: "boolean", default: false } } });
  const { openInstallation, planInstallation } = await import("./platform/installation.ts");
  const { planLines } = await import("./platform/database/migrations/migration-plan.ts");
  const options = { clock: call.clock, log: createLog("silent", {}), connectWithinMs: 0 };
  const plan = await closing((life) => planInstallation(call.settings, life, options));
  if (!values.plan) await closing((life) => openInstallation(call.settings, life, options));
  if (values.json) writeLine(call.stdout, JSON.stringify(plan));
  else if (values.plan || plan.missing.length === 0) writeLine(call.stdout, planLines(plan).join("\n"));
  else writeLine(call.stdout, `Migrated: ${plan.missing.join(", ")}`);
  return DONE;
};

const afterRestore = async (call: Call): Promise<number> => {
  const { values } = parseArgs({ args: [...call.args], options: { repair: { type: "boolean", default: false }, json: { type: "boolean", default: false } } });
  const { restoreLines, settleRestore } = await import("./after-restore.ts");
  const settled = await withInstallation(call, (installation) => settleRestore(installation, values));
  writeLine(call.stdout, values.json ? JSON.stringify(settled) : restoreLines(settled).join("\n"));
  return settled.brokenLogs.length === 0 ? DONE : FAILED;
};

const COMMANDS: ReadonlyMap<string, (call: Call) => Promise<number>> = new Map([
  ["config", config],
  ["bootstrap", bootstrap],
  ["token", token],
  ["sign-in", signIn],
  ["master-key", masterKey],
  ["audit", audit],
  ["migrate", migrate],
  ["after-restore", afterRestore],
]);

/** Runs one command; resolves to the exit code. */
export const runCommandLine = async ([name, ...args]: readonly string[], terminal: Terminal): Promise<number> => {
  const { env, stdout, stderr } = terminal;
  try {
    if (name === undefined || name === "help" || name === "--help" || args.includes("--help")) {
      writeLine(stdout, HELP);
      return DONE;
    }
    const settings = readConfig(env);
    const command = COMMANDS.get(name);
    if (command === undefined) throw new UsageError(`there is no command ${name}; see --help`);
    return await command({ ...terminal, settings, args });
  } catch (error) {
    const expected =
      error instanceof UsageError ||
      error instanceof ConfigError ||
      (error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS"));
    writeLine(stderr, expected ? (error as Error).message : error instanceof Error ? (error.stack ?? error.message) : String(error));
    return expected ? WRONG_USE : FAILED;
  }
};

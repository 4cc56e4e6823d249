// Every command of the command line, called in this process with the settings of a running gateway. test/flows/installation.test.ts runs it as a program.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCommandLine } from "../../server/command-line.ts";
import { systemClock } from "../../server/core/clock.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { anonymous, asBearer, type Caller, startWorld, type World } from "../kit/gateway/world.ts";
import { createEmptyDatabase } from "../kit/stores/database.ts";

const MASTER_KEY = Buffer.alloc(32, 3).toString("base64");

let world: World;
let env: Env;
beforeAll(async () => {
  world = await startWorld({ MASTER_KEY });
  env = { DATABASE_URL: world.databaseUrl, MASTER_KEY, DATA_DIR: world.dataDir, PORT: new URL(world.url).port };
});
afterAll(() => world.close());

const collect = () => {
  const parts: string[] = [];
  const stream = new Writable({
    write: (part, _encoding, done) => {
      parts.push(String(part));
      done();
    },
  });
  return { stream, text: () => parts.join("") };
};
type Env = Readonly<Record<string, string>>;
const runIn = async (env: Env, ...words: readonly string[]) => {
  const [stdout, stderr] = [collect(), collect()];
  const code = await runCommandLine(words, { clock: systemClock, env, stdout: stdout.stream, stderr: stderr.stream });
  return { code, stdout: stdout.text(), stderr: stderr.text() };
};
const runWith = (more: Env, ...words: readonly string[]) => runIn({ ...env, ...more }, ...words);
const run = (...words: readonly string[]) => runWith({}, ...words);
/** The record that a command prints with --json. */
const printed = async (...words: readonly string[]): Promise<Readonly<Record<string, string>>> => {
  const { code, stdout, stderr } = await run(...words, "--json");
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
};
/** The operator's own tenant. */
let home: Readonly<Record<"tenantId" | "userId", string>>;
beforeAll(async () => {
  const { tenantId = "", userId = "" } = await printed("bootstrap");
  home = { tenantId, userId };
});
const me = (as: Caller) => world.call(as, "GET", "/v1/auth/me");

describe("bootstrap", () => {
  test("another name makes another tenant, and --slug finds a tenant under any name", async () => {
    const other = await printed("bootstrap", "--tenant", "Acme Works", "--user", "acme");
    const same = await printed("bootstrap", "--slug", "acme-works", "--tenant", "Renamed", "--user", "acme");
    expect(other["tenantId"]).not.toBe(home.tenantId);
    expect(same["tenantId"]).toBe(other["tenantId"]);
  });

  test("without --json bootstrap prints a list for people", async () => {
    const { code, stdout } = await run("bootstrap");
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^tenantId +${home.tenantId}$`, "m"));
  });

  test("bootstrap returns the real address of the gateway on its database", async () => {
    const { code, stdout, stderr } = await runWith({ PORT: "9" }, "bootstrap", "--json");
    expect([code, JSON.parse(stdout).baseUrl, stderr]).toEqual([0, world.url, `the gateway of this database is at ${world.url}, not at http://127.0.0.1:9\n`]);
  });

  test("bootstrap refuses to create a second database and says which settings differ", async () => {
    const { DATABASE_URL: _, ...embedded } = env;
    const DATA_DIR = join(world.dataDir, "other");
    const { code, stdout, stderr } = await runIn({ ...embedded, DATA_DIR }, "bootstrap", "--json");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^the gateway at \\S+ serves another database .*DATA_DIR ${DATA_DIR}.*\n$`));
    expect(existsSync(DATA_DIR)).toBe(false);
  });
});

describe("sign-in", () => {
  /** The session's cookie. */
  const open = async (url = ""): Promise<string> => {
    const response = await fetch(url, { redirect: "manual" });
    return response.headers.getSetCookie()[0]?.split(";")[0] ?? `refused with ${response.status}`;
  };

  test("the command makes a link that signs the owner of the installation in once, without a tenant or with one", async () => {
    const { tenantId, userId } = home;
    for (const words of [[], ["--user", userId, "--tenant", tenantId]]) {
      const { url, expiresAt = "" } = await printed("sign-in", ...words);
      expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(600_000);
      const cookie = await open(url);
      const { status, body } = await world.call({ ...anonymous, headers: () => ({ cookie }) }, "GET", "/v1/auth/me");
      expect([status, body.data]).toMatchObject([200, { subject: userId, tenantId }]);
      expect(await open(url)).toBe("refused with 401");
    }
  });
});

describe("token", () => {
  test("a token with a role makes its user a member with that role", async () => {
    const { tenantId } = home;
    const { token = "" } = await printed("token", "--user", "vera", "--tenant", tenantId, "--role", "viewer");
    expect(await me(asBearer(token))).toMatchObject({ status: 200, body: { data: { subject: "vera", tenantId, role: "viewer" } } });
  });

  test("a token without a membership opens no tenant", async () => {
    const { tenantId } = home;
    const { token = "" } = await printed("token", "--user", "stranger", "--tenant", tenantId);
    const { status } = await world.call(asBearer(token), "GET", "/v1/devices", { headers: { "x-svc-tenant-id": tenantId } });
    expect([403, 404]).toContain(status);
  });
});

describe("config", () => {
  test("config prints the settings in force and masks secrets", async () => {
    const secrets = { INTERNAL_TOKEN: "swordfish-swordfish", DATABASE_URL: "postgres://u:hunter2@db/x" };
    const { code, stdout } = await runWith(secrets, "config");
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^PORT +${env["PORT"]} `, "m"));
    expect(stdout).toMatch(/^MASTER_KEY +\*{8} /m);
    expect(stdout).not.toMatch(/swordfish|hunter2|AwMD/);
  });
});

test("migrate brings an empty database to the schema of this build, and --plan says before and after what is missing", { timeout: 60_000 }, async () => {
  const empty = { DATABASE_URL: await createEmptyDatabase() };
  const before = await runWith(empty, "migrate", "--plan", "--json");
  expect([before.code, JSON.parse(before.stdout).missing.length > 50]).toEqual([0, true]);
  expect(await runWith(empty, "migrate")).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Migrated: \d{14}_/), stderr: "" });
  for (const words of [["migrate", "--plan"], ["migrate"]])
    expect(await runWith(empty, ...words)).toEqual({ code: 0, stdout: "Nothing to do: the schema is this build's.\n", stderr: "" });
});

describe("after-restore", () => {
  const session = async (): Promise<string> => {
    const { url = "" } = await printed("sign-in");
    return (await fetch(url, { redirect: "manual" })).headers.getSetCookie()[0]?.split(";")[0] ?? "";
  };
  const withCookie = (cookie: string): Caller => ({ kind: "user", headers: () => ({ cookie }) });

  test("sessions end, keys and members are listed for review, and with --repair devices that are away may pair again", async () => {
    const cookie = await session();
    expect((await me(withCookie(cookie))).status).toBe(200);
    const tenant = await world.tenant();
    const { deviceId } = await tenant.device();
    const repairUntil = async () => (await world.call(await tenant.user("owner"), "GET", `/v1/devices/${deviceId}`)).body.data.repairUntil ?? null;

    const { code, stdout } = await run("after-restore");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Sessions: [1-9]\d* ended/m);
    expect(stdout).toMatch(new RegExp(`^  ${tenant.tenantId}  key_\\w+ `, "m"));
    expect(stdout).toMatch(new RegExp(`^  ${tenant.tenantId}  owner .*${tenant.ownerId}`, "m"));
    await eventually(async () => expect((await me(withCookie(cookie))).status).toBe(401));
    expect(await repairUntil()).toBeNull();

    const settled = JSON.parse((await run("after-restore", "--repair", "--json")).stdout);
    expect(settled).toMatchObject({ brokenLogs: [], endedSessions: 0 });
    expect(settled.openedRepairs).toBeGreaterThan(0);
    expect(Date.parse(await repairUntil())).toBeGreaterThan(0);
  });
});

describe("audit", () => {
  let tenantId: string;
  beforeAll(async () => {
    ({ tenantId = "" } = await printed("bootstrap", "--slug", "audited", "--user", "auditor"));
  });

  test("a log that nobody has touched verifies with exit code 0", async () => {
    const { code, stdout } = await run("audit", "verify", "--tenant", tenantId);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^ten_\w+ {2}whole: 3 records, ends with 3 [0-9a-f]{64}\n$/)]);
    const all = await run("audit", "verify");
    expect([all.code, all.stdout.split("\n").filter((line) => line.includes("whole")).length]).toEqual([0, all.stdout.trim().split("\n").length]);
    expect(all.stdout).toContain(stdout);
  });

  test("the export has every record of the tenant, one per line", async () => {
    const { code, stdout } = await run("audit", "export", "--tenant", tenantId);
    const lines = stdout.trim().split("\n");
    expect([code, lines.map((line) => JSON.parse(line).sequence)]).toEqual([0, [1, 2, 3]]);
    const csv = await run("audit", "export", "--tenant", tenantId, "--format", "csv");
    expect(csv.stdout.split("\r\n")[0]).toMatch(/^sequence,at,/);
  });

  test("a wrong use of the command says so with exit code 2", async () => {
    for (const words of [["audit"], ["audit", "export"], ["audit", "export", "--tenant", "t", "--format", "xml"], ["audit", "verify", "--what"]])
      expect([words, (await run(...words)).code]).toEqual([words, 2]);
  });

  test("a changed record is named, and the exit code is 1", async () => {
    const { rows } = await world.sql.query("select audit_id, actor_id from audit_logs where tenant_id = $1 and sequence = 2", [tenantId]);
    const [{ audit_id: auditId, actor_id: actorId }] = rows;
    const setActor = (to: string) => world.sql.query("update audit_logs set actor_id = $2 where audit_id = $1", [auditId, to]);
    await world.sql.query("alter table audit_logs disable trigger audit_append_only");
    await setActor("nobody");
    try {
      const { code, stdout } = await run("audit", "verify", "--tenant", tenantId);
      expect([code, stdout.trim()]).toEqual([1, `${tenantId}  BROKEN at record 2 (${auditId}): the record was changed`]);
      const all = await run("audit", "verify", "--json");
      const verdicts = all.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect([all.code, verdicts.length > 1, verdicts.filter(({ isIntact }) => !isIntact).map((verdict) => verdict.tenantId)]).toEqual([1, true, [tenantId]]);
      const restored = await run("after-restore");
      expect([restored.code, restored.stdout]).toEqual([1, expect.stringContaining(`Audit: the log of ${tenantId} is BROKEN at record 2`)]);
    } finally {
      await setActor(actorId);
      await world.sql.query("alter table audit_logs enable trigger audit_append_only");
    }
  });
});

describe("errors", () => {
  test.each([
    ["an unknown command", ["frobnicate"], /frobnicate/],
    ["an unknown flag", ["bootstrap", "--nonsense"], /--nonsense/],
    ["an invalid slug", ["bootstrap", "--slug", "A B"], /--slug/],
    ["a token without a user", ["token", "--json"], /--user/],
    ["an unknown role", ["token", "--user", "u", "--tenant", "ten_x", "--role", "king"], /--role/],
    ["a role without a tenant", ["token", "--user", "u", "--role", "viewer"], /--tenant/],
    ["an invalid lifetime", ["token", "--user", "u", "--ttl", "soon"], /--ttl/],
  ])("%s ends with code 2 and one message on standard error", async (_what, words, message) => {
    const { code, stdout, stderr } = await run(...words);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test("wrong settings are named", async () => {
    const { code, stdout, stderr } = await runWith({ PORT: "many", HEARTBEAT_SECONDS: "0" }, "bootstrap", "--json");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/PORT: [\s\S]*HEARTBEAT_SECONDS: /);
  });

  test("an unreachable database is named at once", async () => {
    const { code, stderr } = await runWith({ DATABASE_URL: "postgres://u:hunter2@127.0.0.1:9/x" }, "bootstrap");
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^DATABASE_URL: the database at 127\.0\.0\.1:9 cannot be used: .*\n$/)]);
  });

  test("--help lists the commands", async () => {
    const { code, stdout } = await run("--help");
    expect(code).toBe(0);
    expect(stdout).toMatch(/bootstrap[\s\S]*token[\s\S]*config/);
  });
});

// Settings: one error lists all problems, the displayed configuration masks secrets, and the table in docs/settings.md equals the schema's.
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { internalPortOf, readConfig, Settings } from "../../server/config.ts";
import { describeConfig, settingsTable } from "../../server/config-table.ts";
import { ConfigError } from "../../server/core/errors.ts";
import { reachOf } from "../../server/set-up.ts";
import { BETWEEN, SETTINGS_PAGE } from "./write-settings.ts";

const KEY = Buffer.alloc(32, 9).toString("base64");
const PRODUCTION = {
  NODE_ENV: "production",
  DATABASE_URL: "postgres://db.example/mooring",
  MASTER_KEY: KEY,
  OIDC_ISSUER: "https://id.example.com",
  CORS_ORIGINS: "https://portal.example.com",
};

const problemsOf = (env: Readonly<Record<string, string>>): readonly string[] => {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
};

describe("the configuration", () => {
  test("an empty environment is a working configuration: loopback, embedded database, local issuer", () => {
    const config = readConfig({});
    expect(config).toMatchObject({ PORT: 8080, HOST: "127.0.0.1", INTERNAL_PORT: 8081, DATA_DIR: ".data", NODE_ENV: "development", OIDC_AUDIENCE: "mooring" });
    expect([config.DATABASE_URL, config.REDIS_URL, config.OIDC_ISSUER, config.MASTER_KEY]).toEqual([undefined, undefined, undefined, undefined]);
  });

  test("the ports of tunnels are ports and ranges, a thousand at most, and none of the gateway's own", () => {
    expect(readConfig({ TUNNEL_TCP_PORTS: "20002, 20000-20002,5432" }).TUNNEL_TCP_PORTS).toEqual([5_432, 20_000, 20_001, 20_002]);
    expect(readConfig({}).TUNNEL_TCP_PORTS).toEqual([]);
    for (const bad of ["0", "65536", "20000-", "20010-20000", "20000-29999", "x", "1-600,2001-2600"])
      expect(problemsOf({ TUNNEL_TCP_PORTS: bad })).toEqual([expect.stringMatching(/^TUNNEL_TCP_PORTS: must be ports and ranges/)]);
    expect(problemsOf({ TUNNEL_TCP_PORTS: "8080-8085", EDGE_HTTP_PORT: "8084" })).toEqual([
      "TUNNEL_TCP_PORTS: must not name ports of the gateway itself: 8080, 8081, 8082, 8084",
    ]);
  });

  test("only where nothing is set up, whoever signs in by the first link is an administrator, unless others are named", () => {
    expect(readConfig({}).ADMIN_USERS).toEqual(["local-admin"]);
    expect(readConfig({ ADMIN_USERS: "eva" }).ADMIN_USERS).toEqual(["eva"]);
    expect(readConfig({ DATABASE_URL: "postgres://db.example/mooring", MASTER_KEY: KEY }).ADMIN_USERS).toEqual([]);
    expect(readConfig({ OIDC_ISSUER: "https://id.example.com" }).ADMIN_USERS).toEqual([]);
    expect(readConfig(PRODUCTION).ADMIN_USERS).toEqual([]);
  });

  test("calls to others reach loopback by http while nothing is set up; afterwards only what the operator allows", () => {
    const allowed = (env: Readonly<Record<string, string>>) => {
      const { WEBHOOK_ALLOW_CIDRS, WEBHOOK_ALLOW_HTTP } = readConfig(env);
      return [WEBHOOK_ALLOW_CIDRS, WEBHOOK_ALLOW_HTTP];
    };
    expect(allowed({})).toEqual([["127.0.0.0/8", "::1/128"], true]);
    expect(allowed({ WEBHOOK_ALLOW_CIDRS: "10.0.0.0/8", WEBHOOK_ALLOW_HTTP: "false" })).toEqual([["10.0.0.0/8"], false]);
    expect(allowed({ DATABASE_URL: "postgres://db.example/mooring", MASTER_KEY: KEY })).toEqual([[], false]);
    expect(allowed({ HOST: "0.0.0.0", WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" })).toEqual([["127.0.0.0/8"], false]);
    expect(allowed(PRODUCTION)).toEqual([[], false]);
    const { DATABASE_URL: _named, ...embedded } = PRODUCTION as Readonly<Record<string, string>>;
    expect(allowed({ ...embedded, ALLOW_IN_PRODUCTION: "embedded-database" })).toEqual([[], false]);
  });

  test.each<[string, string, object?]>([
    ["HOST", "0.0.0.0"],
    ["HOST", "::"],
    ["HOST", "gateway"],
    ["INTERNAL_HOST", "10.0.0.1", { INTERNAL_TOKEN: "token-of-sixteen" }],
    ["PUBLIC_URL", "https://gateway.example.com"],
    ["PUBLIC_URL", "http://192.168.1.5:8080"],
    ["PORTAL_URL", "https://portal.example.com"],
    ["TLS_CERT_FILE", "/cert.pem", { TLS_KEY_FILE: "/key.pem" }],
    ["DATABASE_URL", "postgres://localhost/x", { MASTER_KEY: KEY }],
    ["REDIS_URL", "redis://localhost"],
    ["OIDC_ISSUER", "https://id.example.com"],
    ["ADMIN_USERS", "eva"],
    ["SMTP_URL", "smtp://localhost", { MAIL_FROM: "a@b.example" }],
    ["STRIPE_SECRET_KEY", "sk_test_1234", { STRIPE_WEBHOOK_SECRET: "whsec_1234" }],
    ["TRUSTED_PROXIES", "127.0.0.1/32"],
  ])("%s=%s means that the installation is set up, which ends the permission to call loopback, and the log names it", (name, value, more = {}) => {
    const config = readConfig({ [name]: value, ...more });
    expect(config).toMatchObject({ setUpBy: [name], WEBHOOK_ALLOW_CIDRS: [], WEBHOOK_ALLOW_HTTP: false });
    expect(reachOf(config)).toEqual([{ setUpBy: [name], allowed: [], http: false }, expect.stringContaining(name)]);
  });

  test.each([
    ["HOST", "127.0.0.1"],
    ["HOST", "localhost"],
    ["HOST", "::1"],
    ["PUBLIC_URL", "http://localhost:8080"],
    ["PUBLIC_URL", "http://[::1]:8080"],
    ["ADMIN_USERS", ""],
    ["ADMIN_USERS", " , "],
    ["PORT", "9090"],
    ["DATA_DIR", "/tmp/x"],
    ["NODE_ENV", "development"],
  ])("%s=%s is still a first look", (name, value) => {
    const config = readConfig({ [name]: value });
    expect(config).toMatchObject({ setUpBy: [], WEBHOOK_ALLOW_CIDRS: ["127.0.0.0/8", "::1/128"], WEBHOOK_ALLOW_HTTP: true });
    expect(reachOf(config)[1]).toMatch(/^nothing is set up/);
  });

  test("an empty variable counts as unset", () => {
    expect(readConfig({ PORT: "", DATABASE_URL: "" })).toEqual(readConfig({}));
  });

  test("one error names the variable of every problem, in single values and in combinations", () => {
    const wrong = {
      PORT: "99999",
      HEARTBEAT_SECONDS: "soon",
      LOG_LEVEL: "loud",
      MASTER_KEY: "short",
      INTERNAL_TOKEN: "short",
      DATABASE_URL: "mysql://localhost/x",
      PLAN_LIMITS_JSON: "{",
      TRUSTED_PROXIES: "10.0.0.0/8,here",
      RATE_LIMIT_STANDARD: "0",
      NODE_ID: "a b",
      WEBHOOK_ALLOW_HTTP: "maybe",
      ALLOW_IN_PRODUCTION: "everything",
      OIDC_JWKS_URI: "https://id.example.com/keys",
    };
    const named = problemsOf(wrong).map((line) => /^[A-Z_]+/.exec(line)?.[0]);
    expect([...new Set(named)].sort()).toEqual(Object.keys(wrong).sort());
  });

  test.each([
    ["an external database without a master key", { DATABASE_URL: "postgres://localhost/x" }, "MASTER_KEY"],
    ["a key set without an identity provider", { OIDC_JWKS_URI: "https://id.example.com/keys" }, "OIDC_JWKS_URI"],
    ["an identity provider without TLS in production", { ...PRODUCTION, OIDC_ISSUER: "http://id.example.com" }, "OIDC_ISSUER"],
    ["an internal listener beyond loopback without a chosen token", { INTERNAL_HOST: "0.0.0.0" }, "INTERNAL_TOKEN"],
    ["an internal listener on a name that may resolve to any address", { INTERNAL_HOST: "localhost.example.com" }, "INTERNAL_TOKEN"],
    ["an unknown exception for production", { ALLOW_IN_PRODUCTION: "everything" }, "ALLOW_IN_PRODUCTION.0"],
  ])("%s is refused", (_case, env, name) => {
    expect(problemsOf(env)).toEqual([expect.stringMatching(new RegExp(`^${name}: `))]);
  });

  test.each(["127.0.0.1", "127.1.2.3", "::1", "localhost"])("an internal listener on %s needs no chosen token", (INTERNAL_HOST) => {
    expect(problemsOf({ INTERNAL_HOST })).toEqual([]);
  });

  test("production starts once issuer, database, master key and origins are set", () => {
    expect(problemsOf(PRODUCTION)).toEqual([]);
    expect(problemsOf({ ...PRODUCTION, CORS_ORIGINS: "off" })).toEqual([]);
  });

  test.each([
    ["the local issuer", "OIDC_ISSUER", "local-issuer"],
    ["the embedded database", "DATABASE_URL", "embedded-database"],
    ["any origin", "CORS_ORIGINS", "any-origin"],
  ])("production refuses %s until ALLOW_IN_PRODUCTION names it, and the error says so", (_case, setting, name) => {
    for (const without of [{}, { [setting]: "" }, { ALLOW_IN_PRODUCTION: "" }]) {
      const { [setting]: _dropped, ...rest } = PRODUCTION as Record<string, string>;
      expect(problemsOf({ ...rest, ...without })).toEqual([
        expect.stringMatching(new RegExp(`^${setting}: is required in production: .*, add ${name} to ALLOW_IN_PRODUCTION$`)),
      ]);
      expect(problemsOf({ ...rest, ...without, ALLOW_IN_PRODUCTION: ` ${name} ` })).toEqual([]);
    }
  });

  test("a list without an origin is refused", () => {
    expect(problemsOf({ ...PRODUCTION, CORS_ORIGINS: " , " })).toEqual([expect.stringMatching(/^CORS_ORIGINS: /)]);
  });

  test("an error never contains a secret's value", () => {
    expect(problemsOf({ MASTER_KEY: "hunter2hunter2", INTERNAL_TOKEN: "swordfish" }).join()).not.toMatch(/hunter2|swordfish/);
  });

  test("rate limits are a number or off, lists are split, and JSON is parsed", () => {
    const env = {
      RATE_LIMIT_PAIRING: "off",
      RATE_LIMIT_STANDARD: "7",
      CORS_ORIGINS: " https://a.example , https://b.example,",
      PLAN_LIMITS_JSON: '{"starter":{"hosts":3}}',
    };
    expect(readConfig(env)).toMatchObject({
      RATE_LIMIT_PAIRING: null,
      RATE_LIMIT_STANDARD: 7,
      CORS_ORIGINS: ["https://a.example", "https://b.example"],
      PLAN_LIMITS_JSON: { starter: { hosts: 3 } },
    });
  });

  test("the result is frozen", () => {
    expect(Object.isFrozen(readConfig({}))).toBe(true);
  });
});

describe("the displayed configuration", () => {
  test("names every setting with its meaning, and masks secrets", () => {
    const secret = { MASTER_KEY: KEY, INTERNAL_TOKEN: "internal-token-of-this-node", DATABASE_URL: "postgres://user:pa55word@db.example/x" };
    const rows = describeConfig(readConfig(secret));
    expect(rows.map(({ name }) => name)).toEqual(Object.keys(Settings.shape));
    expect(rows.filter(({ meaning }) => meaning === "")).toEqual([]);
    for (const name of Object.keys(secret)) expect(rows.find((row) => row.name === name)).toMatchObject({ value: "********", fallback: "unset" });
    expect(JSON.stringify(rows)).not.toMatch(/pa55word|internal-token|CQkJ/);
  });

  test("shows effective values beside defaults", () => {
    const row = (name: string) => describeConfig(readConfig({ PORT: "9090", RATE_LIMIT_PAIRING: "off" })).find((each) => each.name === name);
    expect(row("PORT")).toMatchObject({ value: "9090", fallback: "8080" });
    expect(row("RATE_LIMIT_PAIRING")).toMatchObject({ value: "off", fallback: "unset" });
    expect(row("HOST")).toMatchObject({ value: "127.0.0.1", fallback: "127.0.0.1" });
  });

  test("the table in docs/settings.md equals the schema's (npm run docs:settings writes it)", async () => {
    const [table = "the marks are missing"] = BETWEEN.exec(await readFile(SETTINGS_PAGE, "utf8")) ?? [];
    expect(table.trim()).toBe(settingsTable());
  });
});

test("the internal ports of workers leave out what other listeners have", () => {
  const ports = (env: Readonly<Record<string, string>>): readonly number[] => {
    const config = readConfig(env);
    return [0, 1, 2].map((worker) => internalPortOf(config, worker));
  };
  expect(ports({})).toEqual([8_081, 8_083, 8_084]);
  expect(ports({ INTERNAL_PORT: "9000", TUNNEL_TCP_PORTS: "9001-9003", EDGE_HTTP_PORT: "9005" })).toEqual([9_000, 9_004, 9_006]);
  expect(ports({ INTERNAL_PORT: "0" })).toEqual([0, 0, 0]);
});

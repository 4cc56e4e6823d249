// A running gateway for one test file, with the users, keys and agents that call it.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTRPCClient, httpBatchLink } from "@trpc/client";
import pg from "pg";
import { type AgentIdentity, type AppRouter, type Role, signedHeaders, type TenantId } from "../../../protocol/index.ts";
import { type AppSettings, createApp } from "../../../server/app.ts";
import { readConfig } from "../../../server/config.ts";
import { type Clock, systemClock } from "../../../server/core/clock.ts";
import { newId } from "../../../server/core/ids.ts";
import { type AppCatalogue, loadAppCatalogue } from "../../../server/features/apps/index.ts";
import { createOpenApi } from "../../../server/gateway/openapi/document.ts";
import { type Log, silentLog } from "../../../server/platform/telemetry/log.ts";
import { packageFile } from "../../../server/version.ts";
import { checkOpenApiAnswer, type GetDocument, readDocument } from "../checks/openapi-answers.ts";
import { WEBHOOK_SECRET } from "../net/stripe.ts";
import { createTestDatabase } from "../stores/database.ts";
import { callInProcess, type Received, type Sent } from "./in-process.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
  readonly body: any;
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Sent unchanged instead of `body`. */
  readonly rawBody?: string | Uint8Array;
}

/** A person in a session: its id, and a caller with its cookie and CSRF token. */
export interface TestSession {
  readonly sessionId: string;
  readonly as: Caller;
  readonly cookie: string;
  readonly csrfToken: string;
}

/** A caller makes new headers for each request, since an agent signs the body. */
export interface Caller {
  readonly kind: "user" | "apiKey" | "agent" | "none";
  headers(body: string | Uint8Array): Record<string, string>;
}

export interface Device {
  readonly deviceId: string;
  readonly identity: AgentIdentity;
  readonly fingerprint: string;
  readonly as: Caller;
}

export interface TestTenant {
  readonly tenantId: TenantId;
  readonly ownerId: string;
  /** A member with that role, created at its first use. */
  user(role?: Role): Promise<Caller>;
  token(role?: Role): Promise<string>;
  userId(role?: Role): string;
  /** The roles whose user somebody has asked for. */
  roles(): readonly Role[];
  readonly apiKey: Caller;
  device(): Promise<Device>;
  trpc(role?: Role): Promise<ReturnType<typeof createTRPCClient<AppRouter>>>;
}

/** The user who runs the installation. */
export const OPERATOR = "operator-of-the-installation";

export const anonymous: Caller = { kind: "none", headers: () => ({}) };
export const asBearer = (token: string): Caller => ({ kind: "user", headers: () => ({ authorization: `Bearer ${token}` }) });
export const asKey = (apiKey: string, tenantId: string): Caller => ({ kind: "apiKey", headers: () => ({ "x-api-key": apiKey, "x-svc-tenant-id": tenantId }) });
export const asAgent = (identity: AgentIdentity, now: () => Date = () => new Date()): Caller => {
  // Two requests in one millisecond would share a signature, so each request gets a later time.
  let last = 0;
  return {
    kind: "agent",
    headers: (body) => {
      last = Math.max(last + 1, now().getTime());
      return signedHeaders(identity, body, new Date(last));
    },
  };
};

export interface WorldOptions {
  /** Each call comes from a new address, so that limits by address do not interfere. Needs TRUSTED_PROXIES. */
  readonly spread?: boolean;
  /** `call` hands its requests to the gateway in this process. The answers are the same but for what a socket adds; `callOverHttp` uses one. */
  readonly inProcess?: boolean;
  /** Starts a node beside another world: on its database, with its keys. */
  readonly beside?: { readonly databaseUrl: string; readonly dataDir: string };
  readonly settings?: AppSettings;
  readonly log?: Log;
  /** The node's own, which may be wrong. */
  readonly clock?: Clock;
}

/** The verified address in the tokens of a tenant's users. */
export const emailOf = (userId: string): string => `${userId.toLowerCase()}@users.example`;

let calls = 0;
const nextAddress = (): Record<string, string> => {
  calls += 1;
  return { "x-forwarded-for": `198.51.${Math.floor(calls / 250) % 250}.${(calls % 250) + 1}` };
};

/** Read once: checking sixty applications takes half as long as all the rest of a world's start. */
let catalogue: AppCatalogue | undefined;
const readCatalogue = (): AppCatalogue => {
  catalogue ??= loadAppCatalogue(packageFile("server/catalogue"));
  return catalogue;
};

type NodeOptions = Pick<WorldOptions, "beside" | "settings" | "log" | "clock">;

const createNode = async (env: Readonly<Record<string, string>>, { beside, settings = {}, log = silentLog, clock = systemClock }: NodeOptions = {}) => {
  const dataDir = beside?.dataDir ?? (await mkdtemp(join(tmpdir(), "mooring-world-")));
  const databaseUrl = beside?.databaseUrl ?? (await createTestDatabase());
  const config = readConfig({
    NODE_ENV: "test",
    PORT: "0",
    INTERNAL_PORT: "0",
    EDGE_PORT: "0",
    DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl,
    DATABASE_POOL: "8",
    // Most worlds have one tenant that does everything at once.
    DATABASE_TENANT_PERCENT: "100",
    DATABASE_STATEMENTS: process.env["TEST_POOLER"] === undefined ? "named" : "unnamed",
    LOG_LEVEL: "silent",
    MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    SHUTDOWN_SECONDS: "5",
    // A busy test machine delays its event loop by itself.
    OVERLOAD_LOOP_MS: "60000",
    LEAVE_NOTICE_SECONDS: "0",
    DRAIN_WINDOW_SECONDS: "0",
    ADMIN_USERS: OPERATOR,
    STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
    // Receivers of tests listen on 127.0.0.2; what reaches 127.0.0.1 came around the guard.
    WEBHOOK_ALLOW_CIDRS: "127.0.0.2/32",
    WEBHOOK_ALLOW_HTTP: "true",
    // No name server listens there, so no test asks one that it did not start.
    DNS_SERVERS: "127.0.0.1:1",
    CONSOLE: "off",
    AGENT_RELEASES_DIR: join(import.meta.dirname, "../agent-releases"),
    ...env,
  });
  const app = await createApp(config, { clock, log, settings: { lingerMs: 0, catalogue: readCatalogue(), ...settings } });
  return {
    app,
    dataDir,
    databaseUrl,
    close: async () => {
      // No load balancer has to notice that it leaves.
      await app.close({ replaced: true });
      if (beside === undefined) await rm(dataDir, { recursive: true, force: true });
    },
  };
};

/** A node that does not listen, and whose jobs, the outbox's among them, run when a test runs them: for tests that call its features without a transport. */
export const createQuietNode: typeof createNode = async (env, options) => {
  const node = await createNode(env, options);
  await node.app.features.outbox.close();
  return node;
};

export const startWorld = async (env: Readonly<Record<string, string>> = {}, { spread = false, inProcess = false, ...options }: WorldOptions = {}) => {
  const { app, dataDir, databaseUrl, close } = await createNode(env, options);
  await app.listen();
  const url = app.publicUrl();
  const sql = new pg.Pool({ connectionString: databaseUrl, max: 2 });

  const getDocument: GetDocument = async (prefix) => JSON.parse(JSON.stringify(createOpenApi(app.entries, prefix, { version: "test", baseUrl: url })));
  await readDocument("/v1", getDocument);

  const overHttp = async ({ method, path, headers, body }: Sent): Promise<Received> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers,
      ...(body.length > 0 ? { body: body as string } : {}),
      redirect: "manual",
      signal: AbortSignal.timeout(15_000),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  const callBy =
    (carry: (sent: Sent) => Promise<Received>) =>
    async (as: Caller, method: string, path: string, options: CallOptions = {}): Promise<Answer> => {
      const body = options.rawBody ?? (options.body === undefined ? "" : JSON.stringify(options.body));
      const headers = {
        ...(body.length > 0 ? { "content-type": "application/json" } : {}),
        ...(spread ? nextAddress() : {}),
        ...as.headers(body),
        ...options.headers,
      };
      const received = await carry({ method, path, headers, body });
      const isJson = /[/+]json\b/.test(received.headers.get("content-type") ?? "");
      const { status, text } = received;
      const answer = { status, headers: received.headers, body: text === "" ? null : isJson ? JSON.parse(text) : text };
      await checkOpenApiAnswer({ method, path, ...answer }, getDocument);
      return answer;
    };
  const callOverHttp = callBy(overHttp);
  const call = inProcess ? callBy((sent) => callInProcess(app.http, sent)) : callOverHttp;

  const tenant = async (options: { readonly unlimited?: boolean } = {}): Promise<TestTenant> => {
    const name = newId("t").slice(2).toLowerCase();
    const ownerId = `owner-${name}`;
    const made = await app.bootstrap({
      name: `Tenant ${name}`,
      slug: `t-${name}`,
      userId: ownerId,
      email: emailOf(ownerId),
      unlimited: options.unlimited ?? true,
    });
    const tenantId = made.tenantId as TenantId;
    const tokens = new Map<Role, Promise<string>>([["owner", Promise.resolve(made.token)]]);
    const token = (role: Role = "owner"): Promise<string> => {
      const known =
        tokens.get(role) ??
        app.mint({ userId: `${role}-${name}`, email: emailOf(`${role}-${name}`), tenantId, role, ttlSeconds: 3_600 }).then((minted) => minted.token);
      tokens.set(role, known);
      return known;
    };
    const apiKey = asKey(made.apiKey, tenantId);
    return {
      tenantId,
      ownerId,
      token,
      apiKey,
      user: async (role) => asBearer(await token(role)),
      userId: (role = "owner") => `${role}-${name}`,
      roles: () => [...tokens.keys()],
      device: async () => {
        // A new user provisions the device, so that the setup uses up nobody's limit.
        const { token: fresh } = await app.mint({ userId: newId("usr"), tenantId, role: "owner", ttlSeconds: 600 });
        const { body, status } = await call(asBearer(fresh), "POST", "/v1/devices/provision", { body: { count: 1 } });
        if (status !== 201) throw new Error(`provisioning failed: ${JSON.stringify(body)}`);
        const [device] = body.data;
        const identity = { agentId: device.agent_id, tenantId: device.tenant_id, secret: device.shared_secret };
        return { deviceId: device.device_id, fingerprint: device.fingerprint, identity, as: asAgent(identity) };
      },
      trpc: async (role) => {
        const bearer = await token(role);
        return createTRPCClient<AppRouter>({ links: [httpBatchLink({ url: `${url}/trpc`, headers: { authorization: `Bearer ${bearer}` } })] });
      },
    };
  };

  const session = async (userId: string, tenantId?: string): Promise<TestSession> => {
    const { token } = await app.signInLink({ userId, tenantId });
    const { status, body, headers } = await call(anonymous, "POST", "/v1/auth/sign-in", { body: { token } });
    if (status !== 201) throw new Error(`the sign-in failed: ${JSON.stringify(body)}`);
    const [cookie = ""] = headers.getSetCookie().map((each) => each.split(";")[0] ?? "");
    const { csrfToken } = body.data;
    return { sessionId: body.data.session.sessionId, cookie, csrfToken, as: { kind: "user", headers: () => ({ cookie, "x-csrf-token": csrfToken }) } };
  };

  return {
    url,
    session,
    databaseUrl,
    dataDir,
    app,
    sql,
    call,
    callOverHttp,
    tenant,
    operator: async (): Promise<Caller> => asBearer((await app.mint({ userId: OPERATOR, email: emailOf(OPERATOR), ttlSeconds: 3_600 })).token),
    close: async () => {
      await close();
      await sql.end();
    },
  };
};
export type World = Awaited<ReturnType<typeof startWorld>>;

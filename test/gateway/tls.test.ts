// The gateway's own TLS: which versions it speaks, which files it refuses, and that a new certificate costs nobody a connection.
import { once } from "node:events";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { type ConnectionOptions, connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { type AgentIdentity, SUBPROTOCOL, signedHeaders } from "../../protocol/index.ts";
import { checkCertificate } from "../../server/certificate.ts";
import { readConfig } from "../../server/config.ts";
import { ConfigError } from "../../server/core/errors.ts";
import type { Log } from "../../server/platform/telemetry/log.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { startWorld, type World } from "../kit/gateway/world.ts";
import { type Authority, createAuthority, type Issued } from "../kit/net/certificates.ts";

const LOOK_MS = 200;
/** The name in the certificate that the gateway has now. */
let current = "first";
let authority: Authority;
let files: Issued;
let world: World;
let apiKey: Record<string, string>;
const logged: { readonly level: string; readonly message: string }[] = [];
const note =
  (level: string) =>
  (_fields: object, message: string): void =>
    void logged.push({ level, message });
const log: Log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
const told = (words: string): number => logged.filter(({ message }) => message.includes(words)).length;

beforeAll(async () => {
  authority = await createAuthority();
  files = await authority.issue("first");
  world = await startWorld({ TLS_CERT_FILE: files.certFile, TLS_KEY_FILE: files.keyFile }, { log, settings: { certificateEveryMs: LOOK_MS } });
  const made = await world.app.bootstrap({ name: "Secure", slug: "secure", userId: "owner", unlimited: true });
  apiKey = { "x-api-key": made.apiKey, "x-svc-tenant-id": made.tenantId };
});
afterAll(async () => {
  await world.close();
  await authority.remove();
});

const call = (method: string, path: string, body?: object): Promise<{ readonly status: number; readonly text: string }> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = { ...apiKey, ...(text === undefined ? {} : { "content-type": "application/json" }) };
    const asked = request(`${world.url}${path}`, { method, headers, ca: authority.ca, agent: false }, (response) => {
      let read = "";
      response
        .setEncoding("utf8")
        .on("data", (part: string) => {
          read += part;
        })
        .on("end", () => resolve({ status: response.statusCode ?? 0, text: read }));
    });
    asked.on("error", reject).end(text);
  });

/** Connects and returns the certificate's name and the TLS version; rejects if the handshake fails. */
const greet = (options: ConnectionOptions = {}): Promise<{ readonly name: string; readonly protocol: string | null }> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(world.url).port), ca: authority.ca, ...options }, () => {
      resolve({ name: String(socket.getPeerCertificate().subject.CN), protocol: socket.getProtocol() });
      socket.destroy();
    });
    socket.once("error", reject);
  });

const agentSocket = async (): Promise<WebSocket> => {
  const { status, text } = await call("POST", "/v1/devices/provision", { count: 1 });
  expect(status).toBe(201);
  const [device] = JSON.parse(text).data;
  const identity: AgentIdentity = { agentId: device.agent_id, tenantId: device.tenant_id, secret: device.shared_secret };
  const url = `${world.url.replace(/^http/, "ws")}/v1/agent/connect`;
  const socket = new WebSocket(url, [SUBPROTOCOL], { ca: authority.ca, headers: signedHeaders(identity, "", new Date()) });
  const [data] = await once(socket, "message");
  expect(JSON.parse(String(data))).toMatchObject({ op: "welcome" });
  return socket;
};

describe("certificate", () => {
  test("a gateway with a certificate names itself with https", async () => {
    expect(world.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const { text } = await call("GET", "/v1/openapi.json");
    expect(JSON.parse(text).servers[0].url).toContain(world.url);
  });

  test("the gateway serves REST and the agent socket over TLS 1.3 and 1.2", async () => {
    expect((await call("GET", "/v1/devices")).status).toBe(200);
    expect(await greet()).toEqual({ name: current, protocol: "TLSv1.3" });
    expect(await greet({ maxVersion: "TLSv1.2" })).toEqual({ name: current, protocol: "TLSv1.2" });
    (await agentSocket()).close();
  });

  test("the gateway refuses older TLS versions, and a client refuses an unknown authority", async () => {
    // At this level every build of OpenSSL offers the old versions.
    await expect(greet({ minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" })).rejects.toThrow(/protocol version/i);
    await expect(greet({ ca: [] })).rejects.toThrow(/certificate/i);
  });

  test("20 sockets that open at once all stay open", async () => {
    const sockets = await Promise.all(Array.from({ length: 20 }, agentSocket));
    expect(sockets.map(({ readyState }) => readyState)).toEqual(sockets.map(() => WebSocket.OPEN));
    for (const socket of sockets) socket.terminate();
  });

  test("new connections get a new certificate, and open sockets stay open", async () => {
    const socket = await agentSocket();
    const before = told("loaded the new certificate; new connections use it");
    await authority.replace(files, await authority.issue("second"));
    current = "second";
    await eventually(async () => expect((await greet()).name).toBe("second"));
    for (let count = 0; count < 30; count += 1) expect((await greet()).name).toBe("second");
    socket.ping();
    await once(socket, "pong");
    expect(socket.readyState).toBe(WebSocket.OPEN);
    (await agentSocket()).close();
    socket.close();
    expect(told("loaded the new certificate; new connections use it")).toBe(before + 1);
  });

  test("a broken renewal keeps the working certificate and is reported once, and the repaired one takes over", async () => {
    const before = told("could not use the new certificate; the old one stays");
    await writeFile(files.certFile, "-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n");
    await eventually(() => expect(told("could not use the new certificate; the old one stays")).toBe(before + 1));
    expect((await greet()).name).toBe(current);
    // An explicit renewal does not report the same problem again.
    await world.app.renewCertificate();
    expect(told("could not use the new certificate; the old one stays")).toBe(before + 1);
    await authority.replace(files, await authority.issue("third"));
    current = "third";
    await world.app.renewCertificate();
    expect((await greet()).name).toBe("third");
  });
});

describe("unusable files", () => {
  const check = async (env: Record<string, string>): Promise<string> => {
    try {
      await checkCertificate(readConfig(env));
      return "";
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.message;
    }
  };

  test("a certificate without its key, or a key without its certificate, is refused", async () => {
    expect(await check({ TLS_CERT_FILE: "/some.pem" })).toContain("TLS_KEY_FILE: is required with TLS_CERT_FILE");
    expect(await check({ TLS_KEY_FILE: "/some.key" })).toContain("TLS_CERT_FILE: is required with TLS_KEY_FILE");
  });

  test("a missing, unreadable, malformed or mismatched file is reported with its setting", async () => {
    const dir = join(authority.dir, "refused");
    await mkdir(dir);
    const [good, other] = [await authority.issue("good"), await authority.issue("other")];
    const encrypted = join(dir, "encrypted.key");
    await writeFile(encrypted, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    const empty = join(dir, "empty");
    await writeFile(empty, "");
    const swapped = join(dir, "swapped");
    await copyFile(good.keyFile, swapped);
    const pair = (TLS_CERT_FILE: string, TLS_KEY_FILE: string) => check({ TLS_CERT_FILE, TLS_KEY_FILE });
    expect(await pair(good.certFile, good.keyFile)).toBe("");
    expect(await pair(join(dir, "nowhere"), good.keyFile)).toMatch(/^TLS_CERT_FILE: cannot be read \(ENOENT/);
    expect(await pair(good.certFile, dir)).toMatch(/^TLS_KEY_FILE: cannot be read \(EISDIR/);
    for (const cert of [empty, swapped]) expect(await pair(cert, good.keyFile)).toMatch(/^TLS_CERT_FILE: holds no PEM certificate/);
    for (const key of [empty, good.certFile, encrypted]) expect(await pair(good.certFile, key)).toMatch(/^TLS_KEY_FILE: holds no PEM key without passphrase/);
    expect(await pair(good.certFile, other.keyFile)).toBe("TLS_KEY_FILE: is not the key of TLS_CERT_FILE");
  });
});

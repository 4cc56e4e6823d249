// HTTPS as an operator sets it up: certificate files, real processes, the reference agent over wss, signals and workers.
import { request } from "node:https";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Authority, createAuthority, type Issued } from "../kit/certificates.ts";
import { eventually } from "../kit/eventually.ts";
import { bootstrap, built, createSandbox, type Gateway, node, run, type Sandbox, startGateway } from "./processes.ts";

let authority: Authority;
beforeAll(async () => {
  authority = await createAuthority();
});
afterAll(() => authority.remove());

const tls = ({ certFile, keyFile }: Issued) => ({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });

/** The name in the certificate of whoever answers. */
const nameAt = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const asked = request(`${url}/livez`, { ca: authority.ca, agent: false }, (response) => {
      const { subject } = (response.socket as import("node:tls").TLSSocket).getPeerCertificate();
      response.resume().once("end", () => resolve(String(subject.CN)));
    });
    asked.once("error", reject).end();
  });

describe("a gateway with TLS of its own", () => {
  let sandbox: Sandbox;
  let files: Issued;
  let gateway: Gateway;
  beforeAll(async () => {
    files = await authority.issue("first");
    sandbox = await createSandbox(tls(files));
    gateway = await startGateway(sandbox.env);
  }, 60_000);
  afterAll(() => sandbox.remove());

  const fleet = async (env: Record<string, string>) => {
    const { baseUrl, apiKey, tenantId } = await bootstrap(sandbox, "--unlimited");
    expect([gateway.url, baseUrl]).toEqual([expect.stringMatching(/^https:/), gateway.url]);
    const words = ["--url", baseUrl, "--api-key", apiKey, "--tenant", tenantId, "--agents", "5", "--duration", "2s", "--commands-per-second", "10"];
    return node("agent-sim/main.js", [...words, "--json", "--quiet"], { env });
  };

  test("carries the reference agents: they pair, connect by wss and lose no command", { timeout: 60_000 }, async () => {
    const { code, stdout, stderr } = await fleet({ NODE_EXTRA_CA_CERTS: authority.caFile });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, agents: 5 });
  });

  test("is refused by agents that do not know its authority", { timeout: 60_000 }, async () => {
    const { code, stderr } = await fleet({});
    expect([code, stderr]).toEqual([2, expect.stringMatching(/certificate/)]);
  });

  test("takes new files on at SIGHUP", { timeout: 30_000 }, async () => {
    expect(await nameAt(gateway.url)).toBe("first");
    await authority.replace(files, await authority.issue("second"));
    process.kill(gateway.pid, "SIGHUP");
    await eventually(async () => expect(await nameAt(gateway.url)).toBe("second"), 5_000);
    expect((await gateway.end("SIGTERM")).code).toBe(0);
  });
});

test("a key that belongs to another certificate ends the start with one sentence, with workers as without", { timeout: 30_000 }, async () => {
  const [one, other] = [await authority.issue("one"), await authority.issue("other")];
  const sandbox = await createSandbox(tls({ certFile: one.certFile, keyFile: other.keyFile }));
  try {
    for (const args of [[], ["--workers", "2"]]) {
      const { code, stderr } = await run([process.execPath, built("server/main.js"), ...args], { env: { ...sandbox.env, REDIS_URL: "redis://127.0.0.1:1" } });
      expect([code, stderr]).toEqual([1, "TLS_KEY_FILE: is not the key of TLS_CERT_FILE\n"]);
    }
  } finally {
    await sandbox.remove();
  }
});

test("all workers serve the certificate, and take a new one on without being told", { timeout: 120_000 }, async () => {
  const files = await authority.issue("workers");
  const sandbox = await createSandbox({ ...tls(files), SHUTDOWN_SECONDS: "5" });
  try {
    const gateway = await startGateway(sandbox.env, [process.execPath, built("server/main.js"), "--workers", "2"]);
    expect(gateway.url).toMatch(/^https:/);
    const names = async () => new Set(await Promise.all(Array.from({ length: 20 }, () => nameAt(gateway.url))));
    expect(await names()).toEqual(new Set(["workers"]));
    await authority.replace(files, await authority.issue("renewed"));
    await eventually(async () => expect(await names()).toEqual(new Set(["renewed"])), 30_000);
    await gateway.end("SIGTERM");
  } finally {
    await sandbox.remove();
  }
});

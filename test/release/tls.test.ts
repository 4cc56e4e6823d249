// HTTPS as an operator sets it up: certificate files, real processes, reference agents over wss, signals and workers.
import { request } from "node:https";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bootstrapTenant, built, createSandbox, type GatewayProcess, node, runToEnd, type Sandbox, startGatewayProcess } from "../flows/processes.ts";
import { onSharedServer } from "../flows/shared-server.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { type Authority, createAuthority, type Issued } from "../kit/net/certificates.ts";

let authority: Authority;
beforeAll(async () => {
  authority = await createAuthority();
});
afterAll(() => authority.remove());

const tls = ({ certFile, keyFile }: Issued) => ({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });

/** The name in the certificate of the process that answers. */
const nameAt = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const asked = request(`${url}/livez`, { ca: authority.ca, agent: false }, (response) => {
      const { subject } = (response.socket as import("node:tls").TLSSocket).getPeerCertificate();
      response.resume().once("end", () => resolve(String(subject.CN)));
    });
    asked.once("error", reject).end();
  });

describe("one process", () => {
  let sandbox: Sandbox;
  let files: Issued;
  let gateway: GatewayProcess;
  beforeAll(async () => {
    files = await authority.issue("first");
    sandbox = await createSandbox(await onSharedServer(tls(files)));
    gateway = await startGatewayProcess(sandbox.env);
  }, 60_000);
  afterAll(() => sandbox.remove());

  const fleet = async (env: Record<string, string>) => {
    const { baseUrl, apiKey, tenantId } = await bootstrapTenant(sandbox, "--unlimited");
    expect([gateway.url, baseUrl]).toEqual([expect.stringMatching(/^https:/), gateway.url]);
    const words = ["--url", baseUrl, "--api-key", apiKey, "--tenant", tenantId, "--agents", "5", "--duration", "2s", "--commands-per-second", "10"];
    return node("agent-sim/main.js", [...words, "--json", "--quiet"], { env });
  };

  test("reference agents pair, connect over wss and lose no command", { timeout: 60_000 }, async () => {
    const { code, stdout, stderr } = await fleet({ NODE_EXTRA_CA_CERTS: authority.caFile });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, agents: 5 });
  });

  test("agents refuse a certificate of an unknown authority", { timeout: 60_000 }, async () => {
    const { code, stderr } = await fleet({});
    expect([code, stderr]).toEqual([2, expect.stringMatching(/certificate/)]);
  });

  test("SIGHUP loads the new certificate", { timeout: 30_000 }, async () => {
    expect(await nameAt(gateway.url)).toBe("first");
    await authority.replace(files, await authority.issue("second"));
    process.kill(gateway.pid, "SIGHUP");
    await eventually(async () => expect(await nameAt(gateway.url)).toBe("second"));
    expect((await gateway.end("SIGTERM")).code).toBe(0);
  });
});

test("a key of another certificate ends the start with one sentence, with and without workers", { timeout: 30_000 }, async () => {
  const [one, other] = [await authority.issue("one"), await authority.issue("other")];
  const sandbox = await createSandbox(tls({ certFile: one.certFile, keyFile: other.keyFile }));
  try {
    for (const args of [[], ["--workers", "2"]]) {
      const { code, stderr } = await runToEnd([process.execPath, built("server/main.js"), ...args], {
        env: { ...sandbox.env, REDIS_URL: "redis://127.0.0.1:1" },
      });
      expect([code, stderr]).toEqual([1, "TLS_KEY_FILE: is not the key of TLS_CERT_FILE\n"]);
    }
  } finally {
    await sandbox.remove();
  }
});

test("all workers serve the certificate and load a new one by themselves", { timeout: 120_000 }, async () => {
  const files = await authority.issue("workers");
  const sandbox = await createSandbox(await onSharedServer({ ...tls(files), SHUTDOWN_SECONDS: "5" }));
  try {
    const gateway = await startGatewayProcess(sandbox.env, [process.execPath, built("server/main.js"), "--workers", "2"]);
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

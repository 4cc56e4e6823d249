// The agent updates itself: a real gateway offers releases, the agent's launcher tries them, and its apps run on meanwhile.
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createKeys, MAIN, releaseFile, signRelease } from "../../../agent-sim/update/release.ts";
import type { SignedRelease } from "../../../protocol/records/devices/agent-release.ts";
import { bootstrapTenant, built, createSandbox, node, type Sandbox, startGatewayProcess } from "../../flows/processes.ts";
import { onSharedServer } from "../../flows/shared-server.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";

const WITHIN = { timeout: 60_000, interval: 300 };
let sandbox: Sandbox;
let releases: string;
let agent: ChildProcess;
let call: (path: string, body?: unknown) => Promise<never>;
let deviceId: string;
let page: string;
let appPid: string;
const signing = createKeys();

beforeAll(async () => {
  sandbox = await createSandbox(await onSharedServer());
  releases = join(sandbox.dir, "releases");
  await mkdir(releases);
  const { url } = await startGatewayProcess({ ...sandbox.env, AGENT_RELEASES_DIR: releases });
  const { token, enrollmentToken } = await bootstrapTenant(sandbox, "--unlimited");
  call = async (path, body) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(url + path, { headers, ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }) });
    return ((await answer.json()) as { data: never }).data;
  };
  const identity = join(sandbox.dir, "device.json");
  const args = ["agent", "--pair", "nuc", "--enroll", enrollmentToken, "--identity", identity, "--host", "process", "--url", url];
  agent = spawn(process.execPath, [built("agent-sim/main.js"), ...args, "--update-key", signing.publicKey, "--trial", "20"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [agent.stdout, agent.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-2_000);
    });
  const readId = async (): Promise<unknown> => JSON.parse(await readFile(identity, "utf8").catch(() => "{}")).device_id;
  await eventually(async () => expect(await readId(), said).toBeDefined(), WITHIN.timeout);
  deviceId = String(await readId());
  const port = await freePort();
  page = `http://127.0.0.1:${port}/`;
  const { deploymentId, appId } = (await call("/v1/deployments", { appName: "static-site", deviceId, configuration: { port } })) as {
    deploymentId: string;
    appId: string;
  };
  await eventually(async () => expect(await call(`/v1/deployments/${deploymentId}`)).toMatchObject({ status: "active" }), WITHIN.timeout);
  const pidFile = join(`${identity}.data`, "apps", appId, "pid");
  appPid = await readFile(pidFile, "utf8");
  stillRuns = async () => {
    expect((await fetch(page)).status).toBe(200);
    expect(await readFile(pidFile, "utf8")).toBe(appPid);
  };
}, 120_000);
let stillRuns: () => Promise<void>;
afterAll(async () => {
  agent?.kill("SIGKILL");
  await sandbox.remove();
});

interface Ended {
  readonly status: string;
  readonly failureCode: string | null;
  readonly ack: { readonly output: unknown } | null;
}
const order = async (): Promise<Ended> => {
  const { commandId } = (await call(`/v1/devices/${deviceId}/commands`, { type: "agent-update" })) as { commandId: string };
  const ended = (): Promise<Ended> => call(`/v1/commands/${commandId}`);
  await expect.poll(async () => (await ended()).status, { ...WITHIN, timeout: 60_000 }).toMatch(/succeeded|failed/);
  return ended();
};
const agentVersion = async (): Promise<string> => ((await call(`/v1/devices/${deviceId}`)) as { agentVersion: string }).agentVersion;

/** Packs the present agent under this version with the product's own command. */
const pack = async (version: string): Promise<{ readonly text: string; readonly release: SignedRelease }> => {
  const out = join(sandbox.dir, "packed");
  const key = join(sandbox.dir, `${version}.pem`);
  await writeFile(key, signing.privateKey);
  const { code, stdout, stderr } = await node("agent-sim/release.js", ["--key", key, "--out", out, "--version", version], { env: sandbox.env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const manifest = stdout.trim();
  const { signed: _, ...release } = JSON.parse(await readFile(manifest, "utf8"));
  return { text: await readFile(manifest.replace("release.json", "package.json"), "utf8"), release };
};
const offer = async (release: SignedRelease, text: string | null): Promise<void> => {
  if (text !== null) await writeFile(join(releases, release.url.split("/").at(-1) ?? ""), text);
  await writeFile(join(releases, "newest.release.json"), releaseFile(release));
};
const resigned = (release: SignedRelease, text: string): SignedRelease =>
  signRelease({ ...release, sha256: createHash("sha256").update(text).digest("hex"), size: Buffer.byteLength(text) }, signing.privateKey);

test("a signed release is installed when it is ordered, and the app runs on", { timeout: 120_000 }, async () => {
  const { release, text } = await pack("50.0.0");
  await offer(release, text);
  await expect.poll(order, { timeout: 90_000, interval: 1_000 }).toMatchObject({ status: "succeeded", ack: { output: { version: "50.0.0" } } });
  await expect.poll(agentVersion, WITHIN).toBe("50.0.0");
  await stillRuns();
});

test("a release is refused with its reason on the command, and the agent runs on", { timeout: 120_000 }, async () => {
  const { release, text } = await pack("51.0.0");
  // Each has a package of its own, since the gateway may offer the release before for another moment.
  const at = (reason: string, differences: Partial<SignedRelease> = {}): SignedRelease =>
    signRelease({ ...release, url: `/v1/agent/updates/packages/${reason}.package.json`, ...differences }, signing.privateKey);
  const refusals: readonly (readonly [reason: string, release: SignedRelease, text: string | null])[] = [
    ["SIGNATURE_INVALID", { ...at("SIGNATURE_INVALID"), mandatory: true }, text],
    ["SIZE_MISMATCH", at("SIZE_MISMATCH"), text.slice(0, 1_000)],
    ["CHECKSUM_MISMATCH", at("CHECKSUM_MISMATCH"), text.replace("mooring", "Mooring")],
    ["OLDER_VERSION", at("OLDER_VERSION", { version: "0.0.1" }), text],
    ["DOWNLOAD_FAILED", at("DOWNLOAD_FAILED"), null],
  ];
  for (const [reason, offered, content] of refusals) {
    await offer(offered, content);
    await expect.poll(order, { timeout: 20_000, interval: 500 }).toMatchObject({ status: "failed", failureCode: reason });
  }
  expect(await agentVersion()).toBe("50.0.0");
  await stillRuns();
});

test("a release that does not run is given up for the former version, with the reason on the command", { timeout: 120_000 }, async () => {
  const { release, text } = await pack("52.0.0");
  const broken = JSON.stringify({ ...JSON.parse(text), [MAIN]: "process.exit(3);" });
  await offer(resigned(release, broken), broken);
  const output = { version: "50.0.0", offered: "52.0.0", message: expect.stringContaining("it ended with code 3") };
  await expect.poll(order, { timeout: 90_000, interval: 1_000 }).toMatchObject({ status: "failed", failureCode: "FAILED_BEFORE", ack: { output } });
  await expect.poll(agentVersion, WITHIN).toBe("50.0.0");
  await stillRuns();
});

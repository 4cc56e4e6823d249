// What a machine fetches to become a device: who may have it, under which names, and that the script is this gateway's own.
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAgentInstall } from "../../server/gateway/http/agent-install.ts";
import { packageFile } from "../../server/version.ts";
import { startWorld, type World } from "../kit/gateway/world.ts";

const KEY = "k".repeat(43);
const PACKAGE = Buffer.alloc(3_000_000, "mooring");
let folder: string;
let world: World;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agent-install-"));
  await writeFile(join(folder, "install.sh"), await readFile(packageFile("agent-sim/package/install.sh")));
  await writeFile(join(folder, "mooring-agent-1.2.3-linux-x64.tar.gz"), PACKAGE);
  await writeFile(join(folder, "SHA256SUMS"), "sums\n");
  await writeFile(join(folder, "SHA256SUMS.sig"), "signature");
  await writeFile(join(folder, "secret"), "no");
  await symlink("/", join(folder, "mooring-agent-folder"));
  world = await startWorld({ AGENT_UPDATE_KEY: KEY }, { settings: { agentFolder: folder } });
});
afterAll(async () => {
  await world.close();
  await rm(folder, { recursive: true });
});

const get = (path: string, init: RequestInit = {}): Promise<Response> => fetch(`${world.url}${path}`, init);
const codeOf = async (answer: Response): Promise<readonly [number, string]> => [answer.status, ((await answer.json()) as { code: string }).code];

test("the script has the gateway's address, which cannot leave its quotes, and the key of its releases", async () => {
  const answer = await get("/install.sh");
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/x-shellscript; charset=utf-8"]);
  const text = await answer.text();
  const values = /^(?:URL|UPDATE_KEY)=.*$/gm;
  expect(text.match(values)).toEqual([`URL='${world.url}'`, `UPDATE_KEY='${KEY}'`]);
  const odd = createAgentInstall({ folder, publicUrl: () => "https://gw.example.org/it's$(id)`id`/", updateKey: undefined });
  const { body } = await odd({ method: "GET", path: "/install.sh" });
  expect(String(body).match(values)).toEqual(["URL='https://gw.example.org/it%27s$(id)`id`'", "UPDATE_KEY=''"]);
});

test("a package comes whole, to everybody", async () => {
  const answer = await get("/v1/agent/install/mooring-agent-1.2.3-linux-x64.tar.gz");
  expect(answer.status).toBe(200);
  expect(PACKAGE.equals(Buffer.from(await answer.arrayBuffer()))).toBe(true);
  expect(await (await get("/v1/agent/install/SHA256SUMS")).text()).toBe("sums\n");
  expect(await (await get("/v1/agent/install/SHA256SUMS.sig")).text()).toBe("signature");
});

test("64 downloads that nobody reads keep no one else from an answer but further downloads", async () => {
  const path = "/v1/agent/install/mooring-agent-1.2.3-linux-x64.tar.gz";
  const stop = new AbortController();
  const held = await Promise.all(Array.from({ length: 64 }, () => get(path, { signal: stop.signal })));
  expect(new Set(held.map(({ status }) => status))).toEqual(new Set([200]));
  const further = await get(path);
  expect(further.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(await codeOf(further)).toEqual([503, "SERVICE_UNAVAILABLE"]);
  expect((await get("/install.sh")).status).toBe(200);
  stop.abort();
  await Promise.allSettled(held.map(({ body }) => body?.cancel()));
  await expect.poll(async () => (await get(path)).status).toBe(200);
});

test.each([
  "secret",
  "mooring-agent-folder",
  "mooring-agent-9.9.9",
  "install.sh",
  "..%2f..%2fetc%2fpasswd",
  "mooring-agent%00",
  "",
  `mooring-agent${"x".repeat(4_000)}`,
  "__proto__",
])("%j is no package", async (name) => {
  const answer = await get(`/v1/agent/install/${name}`);
  expect(await codeOf(answer)).toEqual([404, "AGENT_PACKAGE_NOT_FOUND"]);
});

test("it is only read", async () => {
  for (const path of ["/install.sh", "/v1/agent/install/SHA256SUMS"]) {
    const head = await get(path, { method: "HEAD", headers: { "accept-encoding": "identity" } });
    const { byteLength } = await (await get(path)).arrayBuffer();
    expect([head.status, head.headers.get("content-length")]).toEqual([200, String(byteLength)]);
    const answer = await get(path, { method: "POST" });
    expect(await codeOf(answer)).toEqual([405, "METHOD_NOT_ALLOWED"]);
  }
});

test("without a build there is a clear answer", async () => {
  const bare = await startWorld({}, { settings: { agentFolder: join(folder, "nothing") } });
  const answer = await fetch(`${bare.url}/install.sh`);
  expect(await codeOf(answer)).toEqual([404, "AGENT_PACKAGE_NOT_FOUND"]);
  await bare.close();
});

// `mooring-agent unpair`: the gateway hears of it, the identity goes with what belongs to it, and apps' data stay.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StoredIdentity } from "../../../agent-sim/agent/index.ts";
import { identityPath, writeIdentity } from "../../../agent-sim/cli/identity-file.ts";
import { resolveSettings } from "../../../agent-sim/cli/settings.ts";
import { unpair } from "../../../agent-sim/cli/unpair.ts";
import { type FakeGateway, SECRET, startFakeGateway } from "../fake-gateway.ts";

let gateway: FakeGateway;
let data: string;
let printed: string[];
beforeEach(async () => {
  gateway = await startFakeGateway();
  data = mkdtempSync(join(tmpdir(), "unpair-"));
  printed = [];
  const ids = { device_id: "dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", agent_id: "agt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", tenant_id: "ten_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R" };
  const identity = { ...ids, shared_secret: SECRET, fingerprint: "sha256:unpaired", connect: {}, infrastructure_secrets: { API_URL: gateway.url } };
  writeIdentity(identityPath(data), StoredIdentity.parse(identity));
  writeFileSync(`${identityPath(data)}.journal`, "");
  mkdirSync(join(data, "apps/app_1"), { recursive: true });
});
afterEach(async () => {
  await gateway.close();
  rmSync(data, { recursive: true });
});

const run = (flags: { readonly yes?: boolean } = {}): Promise<number> => {
  const place = { uid: process.geteuid?.() ?? null, env: { MOORING_AGENT_CONFIG: join(data, "none.yaml"), HOME: data } };
  const resolved = resolveSettings({ data }, place);
  return unpair({ ...place, resolved, words: [], flags, print: (line) => printed.push(line) });
};
const isPaired = (): boolean => existsSync(identityPath(data));

test("tells the gateway with a signed event, and forgets the identity and its journal, but not the apps", async () => {
  expect(await run({ yes: true })).toBe(0);
  expect(gateway.requests).toEqual([expect.stringMatching(/^POST \/v1\/agent\/events .*"type":"agent\.unpaired"/)]);
  expect([isPaired(), existsSync(`${identityPath(data)}.journal`), existsSync(join(data, "apps/app_1"))]).toEqual([false, false, true]);
  expect(printed).toEqual([expect.stringContaining("remove the device in the console")]);
  await expect(run({ yes: true })).rejects.toThrow("this machine is not paired");
});

test("does nothing without --yes", async () => {
  await expect(run()).rejects.toThrow("mooring-agent unpair --yes");
  expect([isPaired(), gateway.requests]).toEqual([true, []]);
});

test("forgets the identity although nobody answers, and says so", async () => {
  gateway.foreign = () => ({ status: 404, text: "<html>a proxy</html>" });
  expect(await run({ yes: true })).toBe(0);
  expect([isPaired(), printed[0]]).toEqual([false, expect.stringContaining("the gateway does not know of it")]);
});

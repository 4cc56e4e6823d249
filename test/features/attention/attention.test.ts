// What needs attention: each cause is one line with its place, the worst first, and nobody sees more than they may.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ATTENTION_KINDS } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { groupOffline } from "../../../server/features/devices/offline.ts";
import { newApp } from "../../contract/samples/apps.ts";
import { newRollout } from "../../contract/samples/rollouts.ts";
import { asKey, type Caller, startWorld, type World } from "../../kit/gateway/world.ts";
import { insert, type Own, openTenant } from "../overview/kit.ts";

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
type Line = any;

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off" }, { inProcess: true });
});
afterAll(() => world.close());

const attention = async (as: Caller): Promise<readonly Line[]> => {
  const { status, body } = await world.call(as, "GET", "/v1/attention");
  expect(status, JSON.stringify(body)).toBe(200);
  return body.data;
};
const kindsFor = async (as: Caller): Promise<readonly string[]> => [...new Set((await attention(as)).map(({ kind }) => kind))];

/** A key with these permissions alone, or all of an operator. */
const keyOf = async ({ owner, tenant }: Own, scopes: readonly string[], selector: object | null = null): Promise<Caller> => {
  const { status, body } = await world.call(owner, "POST", "/v1/api-keys", { body: { name: newId("k"), scopes, selector } });
  expect(status, JSON.stringify(body)).toBe(201);
  return asKey(body.data.apiKey, tenant.tenantId);
};

/** Devices that were last seen so many seconds ago, offline since. */
const offline = async (stock: Own, seconds: readonly number[], row: object = {}): Promise<readonly string[]> => {
  const ids: string[] = [];
  for (const [at, ago] of seconds.entries()) {
    const deviceId = newId("dev");
    await insert(stock, "devices", { device_id: deviceId, name: `till ${at + 1}`, status: "offline", ...row });
    await insert(stock, "device_presence", { device_id: deviceId, last_seen_at: new Date(Date.now() - ago * 1_000) });
    ids.push(deviceId);
  }
  return ids;
};

/** One thing of each kind. */
const troubled = async (): Promise<Own> => {
  const stock = await openTenant(world);
  const { device } = stock;
  await offline(stock, [60]);
  await newApp(stock, { status: "error" });
  const drifting = await newApp(stock);
  await world.sql.query("update apps set drift_since = now() where app_id = $1", [drifting.appId]);
  const old = await newApp(stock);
  await world.sql.query("update apps set template_version = '0.0.1' where app_id = $1", [old.appId]);
  const paused = await newRollout(stock, { status: "paused" });
  await world.sql.query("update rollouts set status_reason = 'THRESHOLD_EXCEEDED' where rollout_id = $1", [paused]);
  await newRollout(stock, { status: "awaiting_approval", phase: 0 });
  await insert(stock, "custom_domains", {
    domain_id: newId("dom"),
    hostname: `${newId("a").toLowerCase()}.example`,
    status: "failed",
    failure: "DOMAIN_TAKEN",
  });
  const soon = new Date(Date.now() + 3 * 86_400_000);
  await insert(stock, "custom_domains", { domain_id: newId("dom"), hostname: `${newId("b").toLowerCase()}.example`, status: "active", cert_not_after: soon });
  const lastError = { stage: null, reason: "REPOSITORY_UNREACHABLE", message: "the key was refused", lines: [] };
  await insert(stock, "backup_destinations", { destination_id: newId("bdt"), kind: "s3", last_error: JSON.stringify(lastError) });
  await insert(stock, "backup_policies", { policy_id: newId("bpl"), name: "nightly", enabled: true, consecutive_failures: 2, target: "{}", retention: "{}" });
  await insert(stock, "webhooks", { webhook_id: newId("whk"), url: "https://a.example/hook", status: "disabled", disabled_reason: "gone" });
  const alert = { type: "device.cpu", severity: "critical", status: "open", rule_name: "Busy", target_id: device.deviceId, target_count: 1, active_count: 1 };
  await insert(stock, "alerts", { alert_id: newId("alr"), ...alert });
  await insert(stock, "security_alerts", { alert_id: newId("sal"), type: "auth.failed_burst", severity: "high", status: "open" });
  return stock;
};

describe("the list", () => {
  let stock: Own;
  beforeAll(async () => {
    stock = await troubled();
  });

  test("has a line for each cause, the worst first, each with its place", async () => {
    const lines = await attention(stock.owner);
    expect(lines.map(({ kind }) => kind).sort()).toEqual([...ATTENTION_KINDS].sort());
    const tones = lines.map(({ tone }) => ["bad", "warn", "info"].indexOf(tone));
    expect(tones).toEqual(tones.toSorted());
    expect(lines[0]).toMatchObject({ kind: "security_alert", tone: "bad", action: { place: "security" } });
    expect(lines.find(({ kind }) => kind === "rollout_paused")).toMatchObject({ tone: "bad", params: { reason: "THRESHOLD_EXCEEDED", failed: 1, total: 1 } });
    expect(lines.find(({ kind }) => kind === "apps_outdated")).toMatchObject({ params: { from: "0.0.1", to: "1.0.0" }, subject: { kind: "app" } });
    expect(lines.find(({ kind }) => kind === "backup_destination_failed")).toMatchObject({ params: { reason: "REPOSITORY_UNREACHABLE" } });
  });

  test("of a tenant without trouble is empty, and knows nothing of another's", async () => {
    const { owner } = await openTenant(world);
    expect(await attention(owner)).toEqual([]);
  });

  test("tells a role no more than its permissions let it read", async () => {
    expect(await kindsFor(await keyOf(stock, ["device:read"]))).toEqual(["devices_offline"]);
    expect(await kindsFor(await keyOf(stock, ["device:read", "rollout:read"]))).toEqual(["devices_offline", "rollout_paused", "rollout_approval"]);
    expect((await world.call(await keyOf(stock, ["app:read"]), "GET", "/v1/attention")).status).toBe(403);
  });

  test("shows a caller who is limited to one device nothing of the others", async () => {
    const limited = await keyOf(stock, [], { deviceIds: [stock.device.deviceId] });
    const lines = await attention(limited);
    expect(lines.filter(({ kind }) => kind === "devices_offline" || kind.startsWith("apps_"))).toEqual([]);
  });
});

describe("a cause that is known", () => {
  test("by its maintenance is no line, and one more when that has ended", async () => {
    const stock = await openTenant(world);
    const inMaintenance = (until: Date | null) => ({ maintenance: JSON.stringify({ enabled: true, until: until?.toISOString() ?? null }) });
    await offline(stock, [100], inMaintenance(null));
    await offline(stock, [200], inMaintenance(new Date(Date.now() + 60_000)));
    expect(await attention(stock.owner)).toEqual([]);
    const [over] = await offline(stock, [300], inMaintenance(new Date(Date.now() - 60_000)));
    expect((await attention(stock.owner)).map(({ subject }) => subject.id)).toEqual([over]);
  });

  test("by a person who acknowledged, silenced or paused it is a decision of that person, not an alarm", async () => {
    const stock = await openTenant(world);
    const alert = { type: "device.cpu", severity: "critical", rule_name: "Busy", target_id: stock.device.deviceId };
    await insert(stock, "alerts", { alert_id: newId("alr"), ...alert, status: "acknowledged" });
    await insert(stock, "alerts", { alert_id: newId("alr"), ...alert, status: "open", silenced: true });
    await insert(stock, "alerts", { alert_id: newId("alr"), ...alert, status: "open", snoozed_until: new Date(Date.now() + 60_000) });
    await insert(stock, "alerts", { alert_id: newId("alr"), ...alert, status: "open", type: "device.offline_seconds" });
    await insert(stock, "webhooks", { webhook_id: newId("whk"), url: "https://a.example/hook", status: "disabled", disabled_reason: "manual" });
    const paused = await newRollout(stock, { status: "paused" });
    await world.sql.query("update rollouts set status_reason = 'PERSON' where rollout_id = $1", [paused]);
    expect((await attention(stock.owner)).map(({ kind, tone }) => [kind, tone])).toEqual([["rollout_paused", "info"]]);
  });
});

describe("devices that went offline", () => {
  const device = (secondsAgo: number, ...tags: readonly string[]) => ({
    device_id: newId("dev"),
    name: `d${secondsAgo}`,
    tags,
    reason: null,
    last_seen_at: new Date(Date.UTC(2026, 0, 1) - secondsAgo * 1_000),
    total: 0,
  });

  test("within a minute of each other are one group by the tag that they share; the rest stand alone", () => {
    const porto = [0, 20, 40, 95].map((ago) => device(ago, "site:porto", "till"));
    const lisbon = [10, 30, 50].map((ago) => device(ago, "site:lisbon"));
    const [before, alone] = [device(4_000, "site:porto"), device(9_000)];
    const all = [...porto, ...lisbon, before, alone].toSorted((a, b) => b.last_seen_at.getTime() - a.last_seen_at.getTime());
    const found = groupOffline(all);
    expect(found.groups.map(({ tag, devices }) => [tag, devices.length])).toEqual([
      ["site:porto", 4],
      ["site:lisbon", 3],
    ]);
    expect(found.alone).toEqual([before, alone]);
  });

  test("together without a tag in common are one group without a name", () => {
    expect(groupOffline([0, 10, 20].map((ago) => device(ago)))).toMatchObject({ groups: [{ tag: null, devices: { length: 3 } }], alone: [] });
    expect(groupOffline([])).toEqual({ groups: [], alone: [] });
  });

  test("make a line for a site, one for each of three others, and one that counts the rest", async () => {
    const stock = await openTenant(world);
    await offline(stock, [30, 40, 50, 60], { tags: ["site:porto"] });
    const single = await offline(stock, [1_000, 2_000, 3_000, 4_000, 5_000]);
    const lines = await attention(stock.owner);
    expect(lines.map(({ count }) => count).toSorted((a, b) => b - a)).toEqual([4, 2, 1, 1, 1]);
    expect(lines[0]).toMatchObject({
      subject: { kind: "tag", id: "site:porto" },
      names: ["till 1", "till 2", "till 3"],
      action: { place: "devices", id: null, search: "status=offline&tag=site%3Aporto" },
    });
    expect(lines.flatMap(({ subject }) => (subject?.kind === "device" ? [subject.id] : []))).toEqual(single.slice(0, 3));
    expect(lines.at(-1)).toMatchObject({ count: 2, subject: null, names: ["till 4", "till 5"], action: { search: "status=offline&sort=lastSeen" } });
  });
});

test("many apps in one state are one line, and the list of apps answers its search", async () => {
  const stock = await openTenant(world);
  for (let at = 0; at < 4; at += 1) {
    const { appId } = await newApp(stock, { deviceId: stock.device.deviceId });
    await world.sql.query("update apps set drift_since = now(), template_version = '0.0.1' where app_id = $1", [appId]);
  }
  await newApp(stock, { deviceId: stock.device.deviceId });
  const lines = await attention(stock.owner);
  expect(lines.map(({ kind, count }) => [kind, count])).toEqual([
    ["apps_drifted", 4],
    ["apps_outdated", 4],
  ]);
  for (const { action } of lines) expect((await world.call(stock.owner, "GET", `/v1/apps?${action.search}`)).body.data).toHaveLength(4);
  expect((await world.call(stock.owner, "GET", "/v1/apps?drift=false&outdated=false")).body.data).toHaveLength(1);
});

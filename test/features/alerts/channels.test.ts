// Channels, silences and rules on events: what each service is told and when, what keeps it quiet, and what a failure looks like.
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AlertChannel } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { OutboundError } from "../../../server/core/ports/outbound.ts";
import { createSignals } from "../../../server/features/alerts/signals.ts";
import { createTest } from "../../../server/features/alerts/silence-match.ts";
import { CHANNEL_PER_HOUR } from "../../../server/features/alerts/store/notifications.ts";
import type { Answer } from "../../kit/gateway/world.ts";
import { startListener } from "../../kit/net/listeners.ts";
import { type AlertsRig, openAlerts, PORTAL } from "./kit.ts";

let rig: AlertsRig;
beforeAll(async () => {
  rig = await openAlerts();
});
afterAll(() => rig.close());

const codeOf = ({ status, body }: Answer) => [status, body?.code ?? null];
const URLS = {
  webhook: "https://receiver.example/alerts",
  slack: "https://hooks.slack.com/services/T0/B0/slackSecret",
  discord: "https://discord.com/api/webhooks/1/discordSecret",
  teams: "https://prod.westus.logic.azure.com/workflows/teamsSecret?sig=abcd",
  ntfy: "https://ntfy.sh/secret-topic",
} as const;

/** A tenant with a rule, a device and a channel. */
const ready = async (channel: object) => {
  const own = await rig.open();
  await own.quiet();
  const [device = ""] = await own.devices(1);
  await rig.world.sql.query("update devices set name = $2 where device_id = $1", [device, "<box> *one* & @everyone"]);
  const made = await own.made<AlertChannel & { secret?: string }>("/alert-channels", { name: "c", ...channel });
  await own.rule({ name: "Busy", severity: "critical" });
  const fire = async () => {
    await rig.report([device], { cpu: 99 });
    await rig.evaluate();
    await own.dueNow();
    await rig.evaluate();
  };
  const since = rig.calls.length;
  return {
    own,
    device,
    channel: made,
    fire,
    calls: () => rig.calls.slice(since).filter(({ owner }) => owner === own.tenant.tenantId),
    shown: async (): Promise<AlertChannel> => (await own.call("GET", `/alert-channels/${made.channelId}`)).body.data,
    again: () => own.rows("update alert_notifications set next_attempt_at = now() - interval '1 second' where tenant_id = $1"),
    notifications: () => own.rows("select status, attempts, last_error from alert_notifications where tenant_id = $1 order by notification_id"),
  };
};
const bodyOf = (call: { readonly body?: string | Uint8Array } | undefined) => JSON.parse(String(call?.body));

describe("a message", () => {
  test("to a webhook verifies by Standard Webhooks, under one id in all attempts", async () => {
    const { own, fire, channel, calls, again, device } = await ready({ type: "webhook", config: { url: URLS.webhook } });
    expect(channel.secret).toMatch(/^whsec_/);
    rig.replies.next = async () => rig.answer(500, "busy");
    await fire();
    await rig.send();
    rig.replies.next = async () => rig.answer(204);
    await again();
    await rig.send();
    const [first, second] = calls();
    expect(first?.headers?.["webhook-id"]).toBe(second?.headers?.["webhook-id"]);
    const verified = new Webhook(channel.secret ?? "").verify(String(second?.body), { ...second?.headers });
    const [alert] = await own.alerts();
    expect(verified).toMatchObject({
      type: "alert.opened",
      data: { alertId: alert?.alertId, severity: "critical", targetCount: 1, url: `${PORTAL}/alerts/${alert?.alertId}` },
    });
    await rig.report([device], { cpu: 1 });
    await rig.evaluate();
    await rig.send();
    expect(bodyOf(calls()[2]).type).toBe("alert.resolved");
  });

  test.each([
    ["slack", (body: Answer["body"]) => [body.text, body.attachments[0].color], ["[critical] Busy: &lt;box&gt; *one* &amp; @everyone", "#d92d20"]],
    [
      "discord",
      (body: Answer["body"]) => [body.embeds[0].title, body.allowed_mentions],
      ["\\[critical\\] Busy: \\<box\\> \\*one\\* & \\@everyone", { parse: [] }],
    ],
    [
      "teams",
      (body: Answer["body"]) => [body.type, body.attachments[0].contentType, body.attachments[0].content.type],
      ["message", "application/vnd.microsoft.card.adaptive", "AdaptiveCard"],
    ],
    ["ntfy", (body: Answer["body"]) => [body.topic, body.title, body.priority], ["secret-topic", "[critical] Busy: <box> *one* & @everyone", 5]],
  ] as const)("to %s has the service's form, and no text of a device's becomes markup", async (type, read, expected) => {
    const { fire, calls, shown } = await ready({ type, config: { url: URLS[type], ...(type === "ntfy" ? { token: "tk_secret" } : {}) } });
    await fire();
    await rig.send();
    const [call, ...more] = calls();
    expect(more).toEqual([]);
    expect(read(bodyOf(call))).toEqual(expected);
    expect(call?.url).toBe(type === "ntfy" ? "https://ntfy.sh/" : URLS[type]);
    expect(call?.headers?.["authorization"]).toBe(type === "ntfy" ? "Bearer tk_secret" : undefined);
    expect(String(call?.body).length).toBeLessThan(4_096);
    expect(await shown()).toMatchObject({ lastError: null, lastSentAt: expect.any(String) });
  });

  test("names at most 10 of 200 devices with long names, and stays small", async () => {
    const { own, calls } = await ready({ type: "discord", config: { url: URLS.discord } });
    const devices = await own.devices(200);
    await rig.world.sql.query("update devices set name = repeat('<', 100) where device_id = any($1)", [devices]);
    await rig.report(devices, { cpu: 99 });
    await rig.evaluate();
    await own.dueNow();
    await rig.evaluate();
    await rig.send();
    const [embed] = bodyOf(calls()[0]).embeds;
    expect(embed.description).toContain("and 190 more");
    expect([embed.title.length <= 256, embed.description.length <= 4_096]).toEqual([true, true]);
  });
});

describe("a channel", () => {
  test("never shows its secrets, in answers, in the audit log or in its row", async () => {
    const { own, channel, shown } = await ready({ type: "slack", config: { url: URLS.slack } });
    const records = await own.rows("select changes from audit_logs where tenant_id = $1");
    const row = await own.rows("select encode(config, 'escape') as c, address from alert_channels where tenant_id = $1");
    expect(JSON.stringify([channel, await shown(), records, row])).not.toContain("slackSecre");
    expect(channel.address).toBe("https://hooks.slack.com/…cret");
  });

  test("that fails is tried again, says so in its record, and is given up in the end", async () => {
    const { fire, shown, again, notifications, own } = await ready({ type: "slack", config: { url: URLS.slack } });
    rig.replies.next = async () => {
      throw new OutboundError("TIMEOUT", "late");
    };
    await fire();
    for (let n = 0; n < 11; n += 1) {
      await rig.send();
      await again();
    }
    expect(await notifications()).toEqual([{ status: "failed", attempts: 10, last_error: "it did not answer in time" }]);
    expect(await shown()).toMatchObject({ lastError: "it did not answer in time", version: 1 });
    rig.replies.next = async () => rig.answer(200);
    expect((await own.alerts())[0]?.status).toBe("open");
  });

  test("that answers 404 is given up at once, and its address is blocked for good", async () => {
    for (const [reply, error] of [
      [async () => rig.answer(404, "no_service"), "it answered 404: no_service"],
      [
        async () => {
          throw new OutboundError("BLOCKED", "private");
        },
        "its address is not allowed",
      ],
    ] as const) {
      const { fire, notifications } = await ready({ type: "slack", config: { url: URLS.slack } });
      rig.replies.next = reply;
      await fire();
      await rig.send();
      expect(await notifications()).toEqual([{ status: "failed", attempts: 1, last_error: error }]);
    }
    rig.replies.next = async () => rig.answer(200);
  });

  test("that hangs keeps no other waiting", async () => {
    const { own, fire } = await ready({ type: "slack", config: { url: "https://hangs.example/x1" } });
    await own.made("/alert-channels", { type: "slack", name: "quick", config: { url: "https://quick.example/x1" } });
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    rig.replies.next = async ({ url }) => {
      if (url.startsWith("https://hangs")) await released;
      return rig.answer(200);
    };
    await fire();
    await rig.send();
    const states = () => own.rows("select status from alert_notifications where tenant_id = $1 order by status");
    expect((await states()).map(({ status }) => status)).toEqual(["queued", "sent"]);
    release();
    await rig.send();
    rig.replies.next = async () => rig.answer(200);
    expect((await states()).map(({ status }) => status)).toEqual(["sent", "sent"]);
  });

  test("gets a bounded number of messages an hour; the others wait", async () => {
    const { own, fire, channel, notifications } = await ready({ type: "slack", config: { url: URLS.slack } });
    await rig.world.sql.query(
      `insert into alert_notifications (notification_id, tenant_id, channel_id, alert_id, message, status, sent_at) select 'anf_' || $2 || n, $1, $2, 'alr_1', '{}', 'sent', now() from generate_series(1, ${CHANNEL_PER_HOUR}) n`,
      [own.tenant.tenantId, channel.channelId],
    );
    await fire();
    await rig.send();
    expect((await notifications()).filter(({ status }) => status === "queued").length).toBe(1);
    await own.rows("update alert_notifications set sent_at = now() - interval '2 hours' where tenant_id = $1 and sent_at is not null");
    await rig.send();
    expect((await notifications()).filter(({ status }) => status === "queued").length).toBe(0);
  });

  test("is leased by one of several nodes, so nobody is told twice", async () => {
    const { fire, calls } = await ready({ type: "slack", config: { url: URLS.slack } });
    await fire();
    await Promise.all([rig.send(), rig.send(), rig.send()]);
    expect(calls().length).toBe(1);
  });

  test("that rules do not name is told only of rules that name none, and a deleted one leaves its rules", async () => {
    const { own, fire, channel } = await ready({ type: "slack", config: { url: URLS.slack }, isDefault: false });
    await fire();
    expect(await own.rows("select 1 from alert_notifications where tenant_id = $1")).toEqual([]);
    const rule = await own.rule({ name: "named", channelIds: [channel.channelId] });
    await rig.evaluate();
    await own.dueNow();
    await rig.evaluate();
    expect((await own.rows("select 1 from alert_notifications where tenant_id = $1")).length).toBe(1);
    expect((await own.call("DELETE", `/alert-channels/${channel.channelId}`)).status).toBe(204);
    expect((await own.call("GET", `/alert-rules/${rule.ruleId}`)).body.data.channelIds).toEqual([]);
    expect(await own.rows("select 1 from alert_notifications where tenant_id = $1")).toEqual([]);
  });

  test("keeps its secret when its URL changes, and refuses a stale version", async () => {
    const { own, channel } = await ready({ type: "webhook", config: { url: URLS.webhook, secret: "chosen-by-hand" } });
    expect(channel.secret).toBeUndefined();
    const path = `/alert-channels/${channel.channelId}`;
    expect((await own.call("PATCH", path, { config: { url: "https://other.example/abcdefgh" } })).body.data).toMatchObject({
      address: "https://other.example/…efgh",
      version: 2,
    });
    expect(codeOf(await own.call("PATCH", path, { name: "n", version: 1 }))).toEqual([409, "VERSION_CONFLICT"]);
  });

  test.each([
    [{ type: "email", config: {} }, 400, "VALIDATION_FAILED"],
    [{ type: "email", config: { to: ["a@b.example"], url: URLS.slack } }, 400, "VALIDATION_FAILED"],
    [{ type: "slack", config: { to: ["a@b.example"] } }, 400, "VALIDATION_FAILED"],
    [{ type: "slack", config: { url: "not a url" } }, 400, "VALIDATION_FAILED"],
    [{ type: "ntfy", config: { url: "https://ntfy.sh/" } }, 400, "VALIDATION_FAILED"],
    [{ type: "pager", config: {} }, 400, "VALIDATION_FAILED"],
    [{ type: "slack", config: { url: "https://10.0.0.1:8443/x" } }, 422, "CHANNEL_URL_NOT_ALLOWED"],
    [{ type: "slack", config: { url: "https://user:pass@hooks.slack.com/x" } }, 422, "CHANNEL_URL_NOT_ALLOWED"],
  ])("of a form that cannot work is refused: %j", async (body, status, code) => {
    const own = await rig.open();
    expect(codeOf(await own.call("POST", "/alert-channels", { name: "c", ...body }))).toEqual([status, code]);
  });

  test("is tested by a message that is really sent, and the answer says what came of it", async () => {
    const own = await rig.open();
    const { channelId } = await own.made<AlertChannel>("/alert-channels", { type: "email", name: "c", config: { to: ["tested@users.example"] } });
    expect((await own.call("POST", `/alert-channels/${channelId}/test`, {})).body.data).toMatchObject({ delivered: true, statusCode: null, error: null });
    await rig.send();
    expect(rig.smtp.mails.filter(({ to }) => to.includes("tested@users.example")).length).toBe(1);
    const receiver = await startListener("127.0.0.1");
    const slack = await own.made<AlertChannel>("/alert-channels", {
      type: "slack",
      name: "c",
      config: { url: `http://127.0.0.1:${receiver.port}/hook-secret` },
    });
    const probe = async () => (await own.call("POST", `/alert-channels/${slack.channelId}/test`, {})).body.data;
    expect(await probe()).toMatchObject({ delivered: true, statusCode: 200, error: null });
    expect(receiver.connections()).toBe(1);
    await receiver.close();
    expect(await probe()).toMatchObject({ delivered: false, statusCode: null, error: "it cannot be reached" });
    expect((await own.call("GET", `/alert-channels/${slack.channelId}`)).body.data).toMatchObject({
      lastError: "it cannot be reached",
      lastSentAt: expect.any(String),
    });
    expect(codeOf(await own.call("POST", "/alert-channels/chn_nobody/test", {}))).toEqual([404, "CHANNEL_NOT_FOUND"]);
  });
});

describe("a silence", () => {
  const silenceFor = (matchers: object[], hours = 1) => ({ matchers, endsAt: new Date(Date.now() + hours * 3_600_000).toISOString(), comment: "quiet" });

  test("keeps channels quiet about what it matches, and no record away; when it ends they are told", async () => {
    const { own, fire, device, notifications } = await ready({ type: "slack", config: { url: URLS.slack } });
    await rig.world.sql.query("update devices set tags = '{site:lisbon}' where device_id = $1", [device]);
    const { silenceId } = await own.made<{ silenceId: string }>("/alert-silences", silenceFor([{ name: "tag", value: "site:.*", isRegex: true }]));
    await fire();
    expect(await own.alerts()).toMatchObject([{ status: "open", silenced: true }]);
    expect(await notifications()).toEqual([]);
    expect((await own.call("DELETE", `/alert-silences/${silenceId}`)).status).toBe(204);
    expect(await own.alerts()).toMatchObject([{ silenced: false }]);
    await rig.evaluate();
    expect((await notifications()).length).toBe(1);
  });

  test("of one of two devices leaves the alert audible, and counts only the other", async () => {
    const { own, device, calls, fire } = await ready({ type: "slack", config: { url: URLS.slack } });
    const [second = ""] = await own.devices(1);
    await own.made("/alert-silences", silenceFor([{ name: "deviceId", value: device }]));
    await rig.report([second], { cpu: 99 });
    await fire();
    await rig.send();
    expect(await own.alerts()).toMatchObject([{ silenced: false, targetCount: 2 }]);
    expect(bodyOf(calls()[0]).text).not.toContain("2 devices");
  });

  test("lasts at most 30 days and ends in the future", async () => {
    const own = await rig.open();
    const matchers = [{ name: "severity", value: "info" }];
    for (const hours of [-1, 31 * 24])
      expect(codeOf(await own.call("POST", "/alert-silences", silenceFor(matchers, hours)))).toEqual([400, "VALIDATION_FAILED"]);
    for (const value of ["(a+)+", "[a-z]", "a{2}", "^a", "a\u0000"])
      expect(codeOf(await own.call("POST", "/alert-silences", silenceFor([{ name: "rule", value, isRegex: true }])))).toEqual([400, "VALIDATION_FAILED"]);
  });

  test.each([
    ["web-.*", "web-1", true],
    ["web-.*", "db-1", false],
    ["web|db-.*", "db-1", true],
    ["a.*b.*c", "a1b2c", true],
    ["a.*b", "ab", true],
    ["aba.*aba", "aba", false],
    ["a\\.b", "a.b", true],
    ["a\\.b", "axb", false],
    [".*", "", true],
  ])("pattern %s on %s means what the regular expression means", (value, text, expected) => {
    expect(createTest({ value, isRegex: true })(text)).toBe(expected);
    expect(new RegExp(`^(?:${value})$`, "s").test(text)).toBe(expected);
  });
});

test("a rule on events opens an alert for what the event is about, of its tenant and type alone", async () => {
  const own = await rig.open();
  await own.made("/alert-rules", { name: "Removed", metric: "event", eventType: "device.deleted", operator: "gte", threshold: 1, clearForSeconds: 0 });
  const [deviceId, other] = ["dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", (await rig.open()).tenant.tenantId];
  const { consumer } = createSignals({ clock: systemClock });
  const eventOf = (eventId: string, tenantId: string, type: string) => ({
    ...{ eventId: `${eventId}${tenantId}`, tenantId, type, position: 1, sequence: 1, requestId: null, traceparent: null },
    subjectId: "wh_1",
    data: type === "device.deleted" ? {} : { deviceId },
    createdAt: new Date(),
  });
  const events = [
    eventOf("a", own.tenant.tenantId, "device.deleted"),
    eventOf("b", own.tenant.tenantId, "device.online"),
    eventOf("c", other, "device.deleted"),
  ];
  for (let n = 0; n < 2; n += 1) await rig.db.tx((tx) => consumer(tx, events));
  await rig.evaluate();
  expect(await own.alerts()).toMatchObject([{ type: "device.deleted", value: 1, target: { kind: "resource", id: "wh_1" } }]);
  expect((await rig.world.sql.query("select 1 from alert_signals where tenant_id = $1", [other])).rowCount).toBe(0);
  await own.rows("update alert_signals set at = now() - interval '901 seconds' where tenant_id = $1");
  await rig.evaluate();
  expect(await own.alerts()).toMatchObject([{ status: "resolved" }]);
});

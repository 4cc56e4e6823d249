// What channels are told, and the form in which each kind of service takes it. Names come from devices, so every text is bounded and escaped.
import { ALERT_METRIC_WORDS, type AlertMetric, type ChannelConfig, type ChannelType } from "../../../protocol/index.ts";
import { type Letter, oneLine } from "../../core/ports/mail.ts";
import type { AlertMessage } from "./model.ts";
import type { DueAlert } from "./store/notifications.ts";

/** Rules about events have the type of the event in the place of their metric. */
const watchedText = (type: string): string => (Object.hasOwn(ALERT_METRIC_WORDS, type) ? ALERT_METRIC_WORDS[type as AlertMetric] : `Events "${type}"`); // as: just checked

const MAX_TITLE = 200;
const MAX_NAME = 100;
const bounded = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max - 1).toWellFormed()}…`);

export const alertMessageOf = (kind: "opened" | "resolved", alert: DueAlert, portalUrl: string): AlertMessage => {
  const targets = alert.names.map((name) => bounded(oneLine(name), MAX_NAME));
  const count = alert.count;
  const what = count === 1 ? (targets[0] ?? "") : `${count} ${alert.has_devices ? "devices" : "things"}`;
  const more = count > targets.length ? ` and ${count - targets.length} more` : "";
  const value = count === 1 && kind === "opened" ? `${watchedText(alert.type)}: ${Math.round(alert.value * 100) / 100}. ` : "";
  return {
    kind,
    alertId: alert.alert_id,
    ruleId: alert.rule_id,
    type: alert.type,
    severity: alert.severity,
    title: bounded(`${oneLine(alert.rule_name)}: ${what}`, MAX_TITLE),
    text: `${value}${kind === "resolved" ? "It is over for" : "Affected"}: ${targets.join(", ")}${more}.`,
    targetCount: count,
    targets,
    startedAt: alert.started_at.toISOString(),
    at: alert.at.toISOString(),
    url: `${portalUrl}/alerts/${alert.alert_id}`,
  };
};

export const testMessage = (channelName: string, at: Date, portalUrl: string): AlertMessage => ({
  kind: "test",
  alertId: null,
  ruleId: null,
  type: "test",
  severity: "info",
  title: "Test message",
  text: `The channel ${bounded(oneLine(channelName), MAX_NAME)} works.`,
  targetCount: 0,
  targets: [],
  startedAt: at.toISOString(),
  at: at.toISOString(),
  url: `${portalUrl}/alerts`,
});

const headline = ({ kind, severity, title }: AlertMessage): string =>
  kind === "opened" ? `[${severity}] ${title}` : kind === "resolved" ? `[resolved] ${title}` : title;

export const letterOf = (message: AlertMessage): Letter => ({
  subject: headline(message),
  lines: [message.text, ...(message.kind === "test" ? [] : [`Since: ${message.startedAt}`])],
  link: { label: "Open the alert", url: message.url },
});

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Slack reads these three as its own signs, also in the text of its own notifications. */
const slackText = (text: string): string => text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign] ?? "");
/** Discord and Teams read Markdown; a sign after a backslash is itself. */
const plainMarkdown = (text: string): string => text.replace(/[\\`*_~|<>[\]()#@]/g, "\\$&");

const COLORS: ReadonlyMap<string, number> = new Map([
  ["critical", 0xd92d20],
  ["warning", 0xf79009],
]);
const colorOf = ({ kind, severity }: AlertMessage): number => (kind === "resolved" ? 0x12b76a : (COLORS.get(severity) ?? 0x2e90fa));
const PRIORITIES: ReadonlyMap<string, number> = new Map([
  ["critical", 5],
  ["warning", 4],
]);

type Body = (message: AlertMessage, config: ChannelConfig) => object;
const BODIES: Readonly<Record<Exclude<ChannelType, "email">, Body>> = {
  webhook: ({ kind, at, ...data }) => ({ type: `alert.${kind}`, timestamp: at, data }),
  slack: (message) => ({
    text: slackText(headline(message)),
    attachments: [
      {
        color: `#${colorOf(message).toString(16).padStart(6, "0")}`,
        blocks: [
          { type: "section", text: { type: "plain_text", text: bounded(`${headline(message)}\n${message.text}`, 3_000), emoji: false } },
          { type: "section", text: { type: "mrkdwn", text: `<${message.url}|Open>` } },
        ],
      },
    ],
  }),
  discord: (message) => ({
    allowed_mentions: { parse: [] },
    embeds: [
      {
        title: bounded(plainMarkdown(headline(message)), 256),
        description: bounded(plainMarkdown(message.text), 4_000),
        url: message.url,
        color: colorOf(message),
        timestamp: message.startedAt,
      },
    ],
  }),
  teams: (message) => ({
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        contentUrl: null,
        content: {
          $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
          type: "AdaptiveCard",
          version: "1.4",
          body: [
            {
              type: "TextBlock",
              size: "Medium",
              weight: "Bolder",
              wrap: true,
              color: message.kind === "resolved" ? "Good" : message.severity === "critical" ? "Attention" : "Warning",
              text: plainMarkdown(headline(message)),
            },
            { type: "TextBlock", wrap: true, text: bounded(plainMarkdown(message.text), 4_000) },
          ],
          actions: [{ type: "Action.OpenUrl", title: "Open", url: message.url }],
        },
      },
    ],
  }),
  ntfy: (message, { url = "" }) => ({
    topic: decodeURIComponent(new URL(url).pathname.split("/").at(-1) ?? ""),
    title: bounded(headline(message), 250),
    message: bounded(message.text, 2_000),
    priority: message.kind === "opened" ? (PRIORITIES.get(message.severity) ?? 3) : 2,
    tags: [message.kind === "resolved" ? "white_check_mark" : "rotating_light"],
    click: message.url,
  }),
};

/** ntfy takes JSON, which alone can hold any text, at the address above the topic. */
const addressOf = (type: ChannelType, url: string): string => {
  if (type !== "ntfy") return url;
  const topic = new URL(url);
  topic.pathname = topic.pathname.replace(/\/[^/]*$/, "/");
  return topic.href;
};

/** `id` stays the same for every attempt; `sign` returns the headers of a signed body. */
export const postOf = (
  type: Exclude<ChannelType, "email">,
  {
    config,
    message,
    sign,
  }: { readonly config: ChannelConfig; readonly message: AlertMessage; readonly sign: (body: string) => Readonly<Record<string, string>> },
): Post => {
  const body = JSON.stringify(BODIES[type](message, config));
  const token = type === "ntfy" && config.token !== undefined ? { authorization: `Bearer ${config.token}` } : {};
  return {
    url: addressOf(type, config.url ?? ""),
    headers: { "content-type": "application/json", "user-agent": "mooring-alerts/1", ...token, ...(type === "webhook" ? sign(body) : {}) },
    body,
  };
};

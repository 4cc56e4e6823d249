// The sentences of what needs attention: what it is, what is known of it, and the next step.
import type { AttentionLine } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { inWords } from "../../../../protocol/kit/words.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { numbers } from "../../ui/count.ts";
import { clockOf, duration, Since } from "../../ui/time.tsx";
import { text } from "./text.ts";
import { wayTo } from "./ways.ts";

type Words = (line: AttentionLine) => ReactNode;

const Subject = ({ line }: { readonly line: AttentionLine }) =>
  line.subject === null ? null : (
    <Link {...wayTo(line.action)}>
      <bdi>{line.subject.name}</bdi>
    </Link>
  );
const since = ({ since: at }: AttentionLine): ReactNode => (at === null ? null : <Since at={at} />);
const figure = ({ params }: AttentionLine, name: string): number => (typeof params[name] === "number" ? params[name] : 0);
const word = ({ params }: AttentionLine, name: string): string => (typeof params[name] === "string" ? params[name] : "");
const coded = (line: AttentionLine, name: string): string => inWords(word(line, name).toLowerCase());

const offline: Words = (line) => {
  const { subject, count, since: at } = line;
  if (subject?.kind === "tag")
    return (
      <>
        {text.devicesOf(count)} <Subject line={line} /> {text.wentOffline(at === null ? null : clockOf(at))}
      </>
    );
  if (subject === null) return text.areOffline(count);
  return (
    <>
      <Subject line={line} /> {text.isOffline} {since(line)}
    </>
  );
};
const app =
  (one: (line: AttentionLine) => string, many: (count: number) => string): Words =>
  (line) =>
    line.subject === null ? (
      many(line.count)
    ) : (
      <>
        <Subject line={line} /> {one(line)}
      </>
    );
const named =
  (before: string, after: (line: AttentionLine) => string): Words =>
  (line) => (
    <>
      {before} <Subject line={line} /> {after(line)}
    </>
  );

const ends = (line: AttentionLine): string => {
  const ms = Date.parse(word(line, "endsAt")) - gatewayNow();
  return Number.isNaN(ms) ? text.noCertificate : ms <= 0 ? text.hasEnded : text.endsIn(duration(ms));
};
const TITLES: Readonly<Record<AttentionLine["kind"], Words>> = {
  security_alert: (line) => text.security(inWords(word(line, "type").replaceAll(".", "_"))),
  devices_offline: offline,
  rollout_paused: named(text.rollout, (line) => text.paused(word(line, "reason"), figure(line, "phase"))),
  apps_failed: app(() => text.inError, text.appsInError),
  alert: named("", () => ""),
  domain_failed: named("", (line) => text.domain(word(line, "status"))),
  backup_destination_failed: named(text.destination, () => text.doesNotWork),
  backup_policy_failed: named(text.policy, () => text.notSaved),
  certificate_ending: named("", ends),
  webhook_disabled: named(text.webhook, () => text.isOff),
  apps_drifted: app(() => text.drifts, text.appsDrift),
  rollout_approval: named(text.rollout, (line) => text.waits(figure(line, "phase") + 1)),
  apps_outdated: app((line) => text.canBeUpdated(word(line, "from"), word(line, "to")), text.appsCanBeUpdated),
};
export const titleOf = (line: AttentionLine): ReactNode => TITLES[line.kind](line);

const listed = ({ names, count }: AttentionLine): string => text.names(names, count);
const reason = (line: AttentionLine): string => sentence(coded(line, "reason"));
const sentence = (words: string): string => (words === "" ? "" : `${words.charAt(0).toUpperCase()}${words.slice(1)}.`);
const message = (line: AttentionLine): string => word(line, "message").slice(0, 300);

const NOTES: Readonly<Record<AttentionLine["kind"], (line: AttentionLine) => string>> = {
  security_alert: (line) => text.times(line.count, word(line, "severity")),
  devices_offline: (line) => (line.count > 1 ? listed(line) : reason(line)),
  rollout_paused: (line) => text.failedOf(figure(line, "failed"), figure(line, "total")),
  apps_failed: (line) => (line.count > 1 ? listed(line) : reason(line)),
  alert: (line) => text.severity(word(line, "severity"), line.since),
  domain_failed: reason,
  backup_destination_failed: message,
  backup_policy_failed: (line) => text.unsaved(figure(line, "failed"), figure(line, "total"), figure(line, "runs")),
  certificate_ending: message,
  webhook_disabled: reason,
  apps_drifted: (line) => (line.count > 1 ? listed(line) : text.driftHint),
  rollout_approval: (line) => text.ofDevices(numbers.format(figure(line, "total"))),
  apps_outdated: (line) => (line.count > 1 ? listed(line) : ""),
};
export const noteOf = (line: AttentionLine): string => NOTES[line.kind](line);

export const stepOf = ({ kind, count }: AttentionLine): string => {
  if (count > 1 && kind !== "alert" && kind !== "security_alert") return text.show(count);
  if (kind === "rollout_approval") return text.decide;
  return kind === "apps_outdated" || kind.startsWith("rollout") ? text.review : text.look;
};

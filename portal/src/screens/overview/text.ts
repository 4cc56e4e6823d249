// The sentences of the overview.
import { identifierInWords } from "../../../../protocol/kit/identifier-words.ts";
import { capitalized, inWords } from "../../../../protocol/kit/words.ts";
import { counted, numbers } from "../../ui/count.ts";
import { clockOf } from "../../ui/time.tsx";

const whole = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const and = new Intl.ListFormat("en", { type: "conjunction" });

/** The type of an event, in words. */
const typeInWords = (type: string): string => identifierInWords(type.replaceAll(".", "_")).replace(/^api /, "API ");
const OF_DEVICES: Readonly<Record<string, string>> = { "device.offline": "went offline", "device.online": "came online", "device.created": "joined" };
const REASONS: Readonly<Record<string, (phase: number) => string>> = {
  PERSON: () => "was paused by a person",
  THRESHOLD_EXCEEDED: (phase) => `paused itself in phase ${phase}`,
  PHASE_FAILED: (phase) => `paused itself in phase ${phase}`,
};

export const text = {
  title: "Overview",
  install: "Install an app",
  pair: "Pair a device",
  none: "Pair a device, and this page shows how your fleet is doing.",
  nothing: "No device is shared with you yet.",
  notPermitted: "Your role shows no devices. The places beside this page are yours.",
  total: (devices: number, apps: number | null) => (apps === null ? counted(devices, "device") : `${counted(devices, "device")}, ${counted(apps, "app")}`),
  share: (count: number, total: number) => (total === 0 ? "" : tenths.format(count / total)),
  percent: (share: number) => whole.format(share),
  fine: (share: number) => tenths.format(share),
  states: { online: "online", offline: "offline", provisioning: "never connected" },

  attention: {
    title: "Needs attention",
    well: (devices: number, apps: number) =>
      devices === 0
        ? "Nothing needs you."
        : apps === 0
          ? `${devices === 1 ? "Your device is" : `All ${numbers.format(devices)} devices are`} well.`
          : `All ${counted(apps, "app")} and ${counted(devices, "device")} are well.`,
    all: (count: number) => `Show all ${numbers.format(count)}`,
  },
  kinds: {
    security_alert: "security alert",
    devices_offline: "devices that are offline",
    rollout_paused: "rollout",
    apps_failed: "apps in error",
    alert: "alert",
    domain_failed: "domain",
    backup_destination_failed: "backup destination",
    backup_policy_failed: "backup policy",
    certificate_ending: "certificate",
    webhook_disabled: "webhook",
    apps_drifted: "apps that are not as they should be",
    rollout_approval: "rollout",
    apps_outdated: "apps with an update",
  },
  step: (step: string, subject: string) => `${step}: ${subject}`,
  look: "Look",
  review: "Review",
  decide: "Decide",
  show: (count: number) => `Show ${numbers.format(count)}`,
  names: (names: readonly string[], count: number) => {
    const more = count - names.length;
    return `${and.format(more > 0 ? [...names, `${numbers.format(more)} more`] : names)}.`;
  },
  devicesOf: (count: number) => `${counted(count, "device")} of`,
  wentOffline: (at: string | null) => (at === null ? "are offline" : `went offline at ${at}`),
  areOffline: (count: number) => `${counted(count, "device")} ${count === 1 ? "is" : "are"} offline`,
  isOffline: "has been offline for",
  unreachable: (apps: readonly string[]) =>
    apps.length === 0 ? "" : `${and.format(apps.length > 3 ? [...apps.slice(0, 3), "others"] : apps)} cannot be reached.`,
  rollout: "Rollout",
  paused: (reason: string, phase: number) => REASONS[reason]?.(phase) ?? "is paused",
  waits: (phase: number) => `waits for an approval: phase ${phase}`,
  failedOf: (failed: number, total: number) =>
    failed === 0 ? `No device of ${numbers.format(total)} has failed.` : `${numbers.format(failed)} of ${counted(total, "device")} failed.`,
  ofDevices: (total: string) => (total === "0" ? "" : `${total} devices.`),
  inError: "is in error",
  appsInError: (count: number) => `${numbers.format(count)} apps are in error`,
  drifts: "is not as it should be",
  driftHint: "Something on the device has changed it.",
  appsDrift: (count: number) => `${numbers.format(count)} apps are not as they should be`,
  canBeUpdated: (from: string, to: string) => `can be updated: ${from} to ${to}`,
  appsCanBeUpdated: (count: number) => `${numbers.format(count)} apps can be updated`,
  domain: (status: string) => (status === "degraded" ? "leads elsewhere" : "does not work"),
  destination: "Backup destination",
  doesNotWork: "does not work",
  policy: "Backup policy",
  notSaved: "did not save everything",
  unsaved: (failed: number, total: number, runs: number) =>
    [total === 0 ? "" : `${numbers.format(failed)} of ${counted(total, "app")} failed.`, runs > 1 ? `${numbers.format(runs)} runs in a row.` : ""]
      .join(" ")
      .trim(),
  noCertificate: "has no certificate",
  hasEnded: "has a certificate that has ended",
  endsIn: (length: string) => `has a certificate that ends in ${length}`,
  webhook: "Webhook",
  isOff: "gets nothing any more",
  security: (what: string) => `Security: ${what}`,
  times: (count: number, severity: string) => `${capitalized(severity)}. ${count === 1 ? "Once." : `${numbers.format(count)} times.`}`,
  severity: (severity: string, since: string | null) => `${capitalized(severity)}${since === null ? "" : `, since ${clockOf(since)}`}.`,

  setup: {
    title: "Set up Mooring",
    hide: "Hide",
    count: (done: number, all: number) => `${done} of ${all}`,
    doneSteps: (steps: readonly string[]) => capitalized(and.format(steps)),
    steps: {
      certificate: {
        title: "Serve the gateway with a certificate",
        note: "Its address is not an https address, so what agents and people send can be read on the way. The operator's handbook has both ways to a certificate.",
        act: "",
        done: "the gateway runs with a certificate",
      },
      device: {
        title: "Pair a first device",
        note: "One command on any machine with Linux. It appears here by itself.",
        act: "Pair a device",
        done: "a first device is paired",
      },
      app: { title: "Install a first app", note: "From the catalogue, onto a device of yours.", act: "Choose an app", done: "a first app is installed" },
      channel: {
        title: "Be told when something breaks",
        note: "Mail, ntfy, Slack, Discord, Teams or a webhook. Rules are ready: offline for 10 minutes, disk above 90 %, no good backup for 26 hours.",
        act: "Add a channel",
        done: "somebody is told when something breaks",
      },
      backup: {
        title: "Keep backups of your apps",
        note: "On another device, in S3, or on this gateway, as often as you say.",
        act: "Choose when",
        done: "apps are backed up",
      },
    },
  },
  apps: {
    title: "Your apps",
    all: "All apps",
    open: (name: string) => `Open ${name}`,
    openWord: "Open",
    noContact: "no contact",
    count: (count: number) => counted(count, "app"),
  },
  devices: {
    title: "Devices",
    all: "All devices",
    figures: { cpu: "CPU", memory: "Memory", disk: "Disk" },
    silent: (at: string | null, figures: readonly { readonly name: "cpu" | "memory" | "disk"; readonly value: number }[]) => {
      const before = figures.map(({ name, value }) => `${{ cpu: "CPU", memory: "memory", disk: "disk" }[name]} ${whole.format(value / 100)}`);
      return [at === null ? "" : `No heartbeat since ${at}.`, before.length === 0 ? "" : `Last: ${before.join(", ")}.`].filter(Boolean).join(" ");
    },
  },
  figures: {
    title: "Figures",
    line: (name: string) => `${name}, last 24 hours`,
    online: "Online",
    offline: "Offline",
    risen: (count: number) => `+${numbers.format(count)} in 1 h`,
    appsInError: "Apps in error",
    of: (total: number) => `of ${numbers.format(total)}`,
    commands: "Commands a minute",
    openCommands: "Open commands",
    overdue: (count: number) => `${numbers.format(count)} overdue`,
    backups: "Good backup < 26 h",
    late: (count: number) => `${numbers.format(count)} late`,
  },
  groups: {
    title: (key: string) => `Devices by ${key}`,
    by: "Group by",
    name: (key: string) => capitalized(key),
    devices: "Devices",
    state: "State",
    offline: "Offline",
    since: "Since",
    to: "to",
    never: (count: number) => `${numbers.format(count)} never connected`,
    more: (count: number) => `${numbers.format(count)} more`,
  },
  changes: {
    title: "Changes under way",
    all: "All",
    operation: (name: string) => `${capitalized(typeInWords(name))}, bulk`,
    status: (status: string) => (status === "awaiting_approval" ? "waits for approval" : inWords(status)),
    progress: ({
      phase,
      phases,
      done,
      total,
    }: {
      readonly phase: number | null;
      readonly phases: number | null;
      readonly done: number;
      readonly total: number;
    }) => `${phase === null || phases === null || phases < 2 ? "" : `phase ${phase} of ${phases}: `}${numbers.format(done)} of ${numbers.format(total)} done`,
  },
  activity: {
    title: "Activity",
    all: "All activity",
    none: "What happens to devices, apps and people appears here.",
    alone: (type: string) => capitalized(typeInWords(type)),
    words: (type: string, count: number) => {
      const verb = OF_DEVICES[type];
      if (verb !== undefined) return count === 1 ? verb : `devices ${verb}`;
      return count === 1 ? inWords(type.slice(type.indexOf(".") + 1)) : `times: ${typeInWords(type)}`;
    },
  },
} as const;

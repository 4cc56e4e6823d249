// What needs somebody in a tenant: one line for each cause, with the place where something can be done about it.
import { z } from "zod";

const Timestamp = z.iso.datetime();

/** In the order in which those of one tone are listed. */
export const ATTENTION_KINDS = [
  "security_alert",
  "devices_offline",
  "rollout_paused",
  "apps_failed",
  "alert",
  "domain_failed",
  "backup_destination_failed",
  "backup_policy_failed",
  "certificate_ending",
  "webhook_disabled",
  "apps_drifted",
  "rollout_approval",
  "apps_outdated",
] as const;
export type AttentionKind = (typeof ATTENTION_KINDS)[number];

export const ATTENTION_TONES = ["bad", "warn", "info"] as const;
const SUBJECTS = ["alert", "app", "backupDestination", "backupPolicy", "device", "domain", "rollout", "securityAlert", "tag", "webhook"] as const;
const PLACES = ["alerts", "apps", "backup-destinations", "backup-policies", "devices", "domains", "rollouts", "security", "webhooks"] as const;

export const AttentionLine = z.object({
  kind: z
    .enum(ATTENTION_KINDS)
    .describe(
      "`devices_offline`: devices that went offline within a minute of each other and share a tag are one line. `alert`: an open alert whose cause has no kind of its own. `apps_outdated`: the catalogue has a newer version.",
    ),
  tone: z.enum(ATTENTION_TONES).describe("`bad`: something does not work. `warn`: it soon will not. `info`: a decision or an offer waits."),
  count: z.int().min(1).describe("How many things the line is about."),
  since: Timestamp.nullable().describe("When it began, for the first of them. `null`: nobody knows."),
  subject: z
    .object({ kind: z.enum(SUBJECTS), id: z.string(), name: z.string() })
    .nullable()
    .describe("What it is about, or the tag that all of them have. `null`: they have nothing in common but the kind."),
  names: z.array(z.string()).describe("Of the first three."),
  params: z.record(z.string(), z.union([z.string(), z.number()])).describe("Figures and codes of the kind, such as `failed` and `total` of a rollout."),
  action: z
    .object({
      place: z.enum(PLACES),
      id: z.string().nullable().describe("Of the thing there; `null`: the list."),
      search: z.string().describe("The query of the list's URL, as in saved views."),
    })
    .describe("Where to look."),
});
export type AttentionLine = z.infer<typeof AttentionLine>;

export const MAX_ATTENTION = 50;
export const AttentionList = z.object({
  items: z.array(AttentionLine).describe(`The worst first, at most ${MAX_ATTENTION}.`),
});

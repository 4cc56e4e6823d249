// What the gateway notices of attacks: security events, the alerts that rules raise from them, and what is blocked.
import { z } from "zod";
import { id } from "../kit/ids.ts";

const Timestamp = z.iso.datetime();

export const SEVERITIES = ["low", "medium", "high", "critical"] as const;
export const Severity = z.enum(SEVERITIES);
export type Severity = z.infer<typeof Severity>;

interface SignalFacts {
  readonly severity: Severity;
  /** What its built-in rule wants before it raises an alert. */
  readonly count: number;
  readonly windowSeconds: number;
  /** An event is written only once there are so many within a minute: one expired token is no attack. */
  readonly burst?: number;
  /** Somebody without a good credential may cause it in another's name, so a rule may block only the address that it came from. */
  readonly unproven?: true;
  readonly meaning: string;
}

/** Every type of event, with its built-in rule. */
export const SECURITY_EVENTS = {
  "auth.failed_burst": {
    severity: "medium",
    count: 20,
    windowSeconds: 300,
    burst: 5,
    unproven: true,
    meaning: "Tokens, keys or sessions were refused, five or more within a minute",
  },
  "signature.invalid_burst": {
    severity: "medium",
    count: 20,
    windowSeconds: 300,
    burst: 5,
    unproven: true,
    meaning: "Signatures were wrong, five or more within a minute",
  },
  "signature.replayed": { severity: "high", count: 3, windowSeconds: 300, unproven: true, meaning: "A signature was used a second time" },
  "pairing.bruteforce": { severity: "high", count: 1, windowSeconds: 300, unproven: true, meaning: "Pairing codes or enrollment tokens were guessed" },
  "device.takeover_attempt": {
    severity: "high",
    count: 1,
    windowSeconds: 3_600,
    unproven: true,
    meaning: "A machine asked for the identity of a living device",
  },
  "device.fingerprint_changed": { severity: "medium", count: 1, windowSeconds: 3_600, meaning: "A machine took over a device's identity with permission" },
  "device.cloned": { severity: "critical", count: 1, windowSeconds: 3_600, meaning: "Two living agents use one identity" },
  "api_key.used_from_new_ip": { severity: "low", count: 1, windowSeconds: 3_600, meaning: "An API key was used from an address for the first time" },
  "privilege.escalation_attempt": {
    severity: "high",
    count: 3,
    windowSeconds: 3_600,
    meaning: "Somebody tried to grant what they do not hold",
  },
  "cross_tenant.attempt": { severity: "high", count: 3, windowSeconds: 3_600, meaning: "A credential was used for another tenant or another device" },
  "webhook.ssrf_blocked": { severity: "high", count: 1, windowSeconds: 3_600, meaning: "A call to an address that is not public was stopped" },
  "secrets.read": { severity: "low", count: 20, windowSeconds: 3_600, meaning: "A device's secrets were read" },
} as const satisfies Readonly<Record<string, SignalFacts>>;
export type SecurityEventType = keyof typeof SECURITY_EVENTS;
export const SECURITY_EVENT_TYPES = Object.keys(SECURITY_EVENTS) as readonly SecurityEventType[] as [SecurityEventType, ...SecurityEventType[]];
export const factsOf = (type: SecurityEventType): SignalFacts => SECURITY_EVENTS[type];

const Type = z.enum(SECURITY_EVENT_TYPES).describe(SECURITY_EVENT_TYPES.map((type) => `\`${type}\`: ${SECURITY_EVENTS[type].meaning}.`).join(" "));

/** What an event is about. */
export const SECURITY_SUBJECTS = ["ip", "user", "key", "device", "webhook"] as const;
const Subject = z.enum(SECURITY_SUBJECTS);
export type SecuritySubject = z.infer<typeof Subject>;

export const SecurityEvent = z.object({
  id: id("sev"),
  type: Type,
  severity: Severity,
  timestamp: Timestamp.describe("When it last happened within this minute."),
  details: z.object({
    entityType: Subject,
    entityId: z.string(),
    count: z.int().describe("How often it happened within this minute."),
    firstAt: Timestamp,
    ipAddress: z.string().nullable().describe("The last address that it came from."),
    reason: z.string().nullable(),
    operation: z.string().nullable().describe("The operation that was called last."),
  }),
});
export type SecurityEvent = z.infer<typeof SecurityEvent>;

export const SECURITY_ALERT_STATES = ["open", "acknowledged", "resolved"] as const;
export const SECURITY_RESOLUTIONS = ["false_positive", "mitigated", "accepted"] as const;

export const SecurityAlert = z.object({
  id: id("sal"),
  type: Type,
  severity: Severity,
  status: z.enum(SECURITY_ALERT_STATES),
  ruleId: id("srl"),
  entityType: Subject,
  entityId: z.string(),
  count: z.int().describe("How often it happened, within the rule's window when the alert opened and since then."),
  lastEventAt: Timestamp,
  previousAlertId: id("sal").nullable().describe("The last alert of the same rule about the same, which was resolved before this one opened."),
  createdAt: Timestamp,
  acknowledgedAt: Timestamp.nullable(),
  acknowledgedBy: z.string().nullable(),
  resolvedAt: Timestamp.nullable(),
  resolvedBy: z.string().nullable(),
  resolution: z.enum(SECURITY_RESOLUTIONS).nullable(),
  note: z.string().nullable(),
});
export type SecurityAlert = z.infer<typeof SecurityAlert>;

export const SecurityMetrics = z.object({
  totalEvents: z.int().describe("How often anything happened within the window."),
  openAlerts: z.int().describe("Alerts that are not resolved."),
  blockedEntities: z.int(),
  windowHours: z.int(),
  byType: z.array(z.object({ type: Type, count: z.int() })),
});
export type SecurityMetrics = z.infer<typeof SecurityMetrics>;

export const BLOCKED_TYPES = ["ip", "user", "device", "key"] as const;
export const BlockedType = z.enum(BLOCKED_TYPES);
export type BlockedType = z.infer<typeof BlockedType>;

export const SecurityConditions = z.strictObject({
  count: z.int().min(1).max(100_000).describe("So many events about the same."),
  windowSeconds: z.int().min(60).max(86_400).describe("Within so many seconds."),
  severity: Severity.describe("Of the alert."),
});
export type SecurityConditions = z.infer<typeof SecurityConditions>;

export const SecurityActions = z.strictObject({
  alert: z.boolean().default(true).describe("Raise an alert."),
  block: z
    .strictObject({
      entityType: BlockedType.describe("`ip`: the address that the last event came from. Any other: what the event is about, if it is one."),
      seconds: z.int().min(60).max(2_592_000),
    })
    .nullable()
    .default(null)
    .describe("Block it for a while. `null`: do not."),
});
export type SecurityActions = z.infer<typeof SecurityActions>;

export const SecurityRule = z.object({
  id: id("srl"),
  name: z.string(),
  type: Type,
  enabled: z.boolean(),
  conditions: SecurityConditions,
  actions: SecurityActions,
  builtIn: z.boolean().describe("Each type has one built-in rule; it can be changed and disabled, and not deleted."),
  version: z.int(),
  createdAt: Timestamp.nullable().describe("`null`: a built-in rule that nobody has changed."),
  updatedAt: Timestamp.nullable(),
});
export type SecurityRule = z.infer<typeof SecurityRule>;

export const BlockedEntity = z.object({
  id: id("bke"),
  entityType: BlockedType,
  entityValue: z.string().describe("An address or a network in CIDR form, or an id."),
  reason: z.string().nullable(),
  createdBy: z.string().describe("Who blocked it: a user, a key, or the id of the rule that did."),
  createdAt: Timestamp,
  expiresAt: Timestamp.nullable().describe("`null`: until somebody unblocks it."),
});
export type BlockedEntity = z.infer<typeof BlockedEntity>;

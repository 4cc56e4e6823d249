// What an export has: a section for each kind of record, read by the list that everybody reads, so it has what its reader may see and no secret.
import { ACTOR_FIELDS, type Contract, type ExportScope, FIRST, type Permission } from "../../../protocol/index.ts";
import type { Handlers } from "../../core/feature.ts";
import { type NamedOperation, operationNamed, readCall } from "../../core/own-calls.ts";
import type { TenantScope } from "../../core/scope.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** The handlers of all features, by their groups. */
export type AllHandlers = { readonly [G in keyof Contract]: Handlers<Contract[G]> };

export interface Section {
  readonly kind: string;
  readonly scope: ExportScope;
  /** The operation that lists the records, or reads the only one. */
  readonly read: NamedOperation;
  /** The field with the record's id. */
  readonly id: string;
  /** What names the record among others of its kind, for people and in another tenant. */
  readonly key: (record: Fields) => unknown;
  /** What the records lack because nobody can read it. */
  readonly secrets?: readonly string[];
  /** The section whose records each have a list of these, by the id of the first. */
  readonly each?: string;
  /** Takes the bounds in time of an export, under these names. */
  readonly between?: readonly [from: string, to: string];
  /** Only these of the records that the list has. */
  readonly only?: (record: Fields) => boolean;
  /** Its list makes the first record for whoever reads it first, which no snapshot can. */
  readonly makesFirst?: true;
  /** History: nothing refers to it, and no import reads it. */
  readonly isHistory?: true;
}

const byName = ({ name }: Fields): unknown => name;
const history = (id: string) => ({ id, key: (record: Fields) => record[id], isHistory: true }) as const;

export const SECTIONS: readonly Section[] = [
  { kind: "settings", scope: "settings", read: "tenants.settings", id: "tenantId", key: () => "settings" },
  { kind: "update-policy", scope: "update-policies", read: "rollouts.listPolicies", id: "updatePolicyId", key: byName },
  { kind: "fleet", scope: "fleets", read: "fleets.list", id: "fleetId", key: byName },
  { kind: "device", scope: "devices", read: "devices.list", id: "deviceId", key: ({ fingerprint }) => fingerprint },
  { kind: "role", scope: "roles", read: "roles.list", id: "roleId", key: ({ key }) => key, only: ({ builtIn }) => builtIn !== true },
  { kind: "member", scope: "members", read: "roles.listMembers", id: "memberId", key: ({ email, userId }) => email ?? userId },
  { kind: "deployment", scope: "deployments", read: "deployments.list", id: "deploymentId", key: byName },
  {
    kind: "deployment-revision",
    scope: "deployments",
    read: "deployments.listRevisions",
    each: "deployment",
    id: "revision",
    key: ({ deploymentId, revision }) => `${deploymentId} ${revision}`,
    isHistory: true,
  },
  { kind: "app", scope: "apps", read: "apps.list", id: "appId", key: byName, secrets: ["secrets"] },
  {
    kind: "backup-destination",
    scope: "backup-destinations",
    read: "backupDestinations.list",
    id: "destinationId",
    key: byName,
    secrets: ["credentials", "password"],
    makesFirst: true,
  },
  { kind: "backup-policy", scope: "backup-policies", read: "backupPolicies.list", id: "policyId", key: byName },
  { kind: "channel", scope: "channels", read: "alerts.listChannels", id: "channelId", key: ({ type, name }) => `${type} ${name}`, secrets: ["config"] },
  { kind: "alert-rule", scope: "alert-rules", read: "alerts.listRules", id: "ruleId", key: byName },
  { kind: "silence", scope: "silences", read: "alerts.listSilences", id: "silenceId", key: ({ comment, endsAt }) => `${endsAt} ${comment}` },
  {
    kind: "webhook",
    scope: "webhooks",
    read: "webhooks.list",
    id: "webhookId",
    key: ({ url, events }) => `${url} ${[...(events as string[])].sort().join(" ")}`, // as: the list's own output
    secrets: ["secret", "headers"],
  },
  { kind: "view", scope: "views", read: "views.list", id: "viewId", key: ({ place, name }) => `${place} ${name}` },
  { kind: "tunnel", scope: "tunnels", read: "tunnels.list", id: "tunnelId", key: byName, secrets: ["token"] },
  { kind: "domain", scope: "domains", read: "domains.list", id: "domainId", key: ({ hostname }) => hostname, secrets: ["certificateKey"] },
  { kind: "mesh-route", scope: "mesh-routes", read: "meshRoutes.list", id: "routeId", key: byName },
  { kind: "security-rule", scope: "security-rules", read: "security.listRules", id: "securityRuleId", key: byName },
  { kind: "rates", scope: "rates", read: "costs.getRates", id: "tenantId", key: () => "rates" },
  { kind: "budget", scope: "budgets", read: "costs.listBudgets", id: "budgetId", key: byName },
  { kind: "rollout", scope: "rollouts", read: "rollouts.list", ...history("rolloutId") },
  { kind: "backup", scope: "backups", read: "backups.list", ...history("backupId") },
  { kind: "alert", scope: "alerts", read: "alerts.list", ...history("alertId") },
  { kind: "event", scope: "events", read: "webhooks.listEvents", ...history("eventId"), between: ["since", "until"] },
  { kind: "audit-log", scope: "audit", read: "audit.list", ...history("auditId"), between: ["from", "to"] },
];

export const sectionsOf = (scopes: readonly ExportScope[]): readonly Section[] => SECTIONS.filter(({ scope }) => scopes.includes(scope));

/** What their reader needs beside the permission to export. */
export const permissionsFor = (scopes: readonly ExportScope[]): readonly Permission[] => [
  ...new Set(sectionsOf(scopes).map(({ read }) => operationNamed(read).permission as Permission)), // as: a test says so of each
];

const PAGE = 100;
type List = (call: unknown, input: unknown) => Promise<Fields & { readonly items?: readonly Fields[]; readonly nextCursor?: string }>;

/** The records of a section, page by page, as the contract declares them: what a handler answers beyond that stays out. */
export const pagesOf = async function* (handlers: AllHandlers, scope: TenantScope, { read }: Section, input: Fields): AsyncGenerator<readonly Fields[]> {
  const [group, name] = read.split(".") as [keyof Contract, string]; // as: its type
  const { input: takes, output, list } = operationNamed(read);
  const handler = Reflect.get(handlers[group], name) as List; // as: one of those
  const isPaged = list !== undefined && list !== "plain";
  for (let cursor: string | undefined = FIRST; cursor !== undefined; ) {
    const answer: Awaited<ReturnType<List>> = await handler(readCall(scope), takes.parse({ ...input, ...(isPaged ? { cursor, pageSize: PAGE } : {}) }));
    const declared = output.parse(answer) as typeof answer; // as: the same
    yield list === undefined ? [declared] : (declared.items ?? []);
    cursor = isPaged ? answer.nextCursor : undefined;
  }
};

/** Outside of a snapshot, before one is taken. */
export const makeFirst = async (handlers: AllHandlers, scope: TenantScope, scopes: readonly ExportScope[]): Promise<void> => {
  for (const section of sectionsOf(scopes)) if (section.makesFirst === true) await pagesOf(handlers, scope, section, {}).next();
};

const ADDED: ReadonlySet<string> = new Set(["tenantId", ...Object.values(ACTOR_FIELDS)]);
const REFERENCE = /^(?:flt|upl|dev|dep|app|rol|mem|chn|bkd|bpl|arl|wh|tun)_[0-9A-Za-z]{20,32}$/;

/** Ids of other records anywhere in these fields. */
const referencesIn = (value: unknown): readonly string[] => {
  if (typeof value === "string") return REFERENCE.test(value) ? [value] : [];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(referencesIn) : [];
};

/** A line of the file. */
export interface Line {
  readonly kind: string;
  readonly id: string;
  readonly key: string;
  /** The version of the record; null if it has none. */
  readonly v: number | null;
  readonly data: Fields;
  /** The ids in `data` that name other records. */
  readonly refs: readonly string[];
}

export const exportLine = ({ kind, id, key, isHistory }: Section, record: Fields): Line => {
  const own = String(record[id]);
  const data = Object.fromEntries(Object.entries(record).filter(([name]) => !ADDED.has(name)));
  const refs = isHistory === true ? [] : [...new Set(referencesIn(data))].filter((each) => each !== own).sort();
  return { kind, id: own, key: String(key(record)), v: typeof record["version"] === "number" ? record["version"] : null, data, refs };
};

/** The columns of a kind, for CSV. */
export const columnsOf = ({ read }: Section): readonly string[] => {
  const { output, list } = operationNamed(read);
  const shape = (schema: unknown): Fields => (schema as { readonly shape: Fields }).shape; // as: each list and record is an object
  const record = list === undefined ? output : (shape(output)["items"] as { readonly element: unknown }).element; // as: a list has them
  return Object.keys(shape(record)).filter((name) => !ADDED.has(name));
};

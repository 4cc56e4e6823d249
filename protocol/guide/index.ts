// The guides to all operations that REST serves, and a sentence on each tag.
import type { Contract } from "../index.ts";
import { account } from "./access/account.ts";
import { apiKeys } from "./access/api-keys.ts";
import { invites } from "./access/invites.ts";
import { roles } from "./access/roles.ts";
import { sessions } from "./access/sessions.ts";
import { tenants } from "./access/tenants.ts";
import { agent } from "./agent.ts";
import { alerts } from "./alerts.ts";
import { apps } from "./apps.ts";
import { attention } from "./attention.ts";
import { audit } from "./audit.ts";
import { backupDestinations } from "./backups/backup-destinations.ts";
import { backupPolicies } from "./backups/backup-policies.ts";
import { backups } from "./backups/backups.ts";
import { volumes } from "./backups/volumes.ts";
import { batch } from "./batch.ts";
import { billing } from "./billing.ts";
import { bulkOperations } from "./bulk-operations.ts";
import { commands } from "./commands.ts";
import { costs } from "./costs.ts";
import { dataExports } from "./data-exports.ts";
import { deployments } from "./deployments.ts";
import { devices } from "./devices.ts";
import { domains } from "./domains.ts";
import { fleets } from "./fleets.ts";
import { general } from "./general.ts";
import type { OperationGuide } from "./guide.ts";
import { health } from "./health.ts";
import { imports } from "./imports.ts";
import { admin } from "./installation/admin.ts";
import { announcements } from "./installation/announcements.ts";
import { impersonations } from "./installation/impersonations.ts";
import { meshRoutes } from "./mesh-routes.ts";
import { overview } from "./overview.ts";
import { pairing } from "./pairing.ts";
import { rollouts } from "./rollouts.ts";
import { security } from "./security.ts";
import { traces } from "./traces.ts";
import { tunnels } from "./tunnels.ts";
import { views } from "./views.ts";
import { webhooks } from "./webhooks.ts";

export type { OperationGuide } from "./guide.ts";
export * from "./records.ts";

const GUIDES: { readonly [G in keyof Contract]?: Readonly<Record<string, OperationGuide>> } = {
  views,
  account,
  admin,
  announcements,
  impersonations,
  agent,
  alerts,
  apiKeys,
  apps,
  attention,
  audit,
  backupDestinations,
  backupPolicies,
  backups,
  batch,
  billing,
  bulkOperations,
  commands,
  costs,
  imports,
  dataExports,
  deployments,
  devices,
  domains,
  tunnels,
  meshRoutes,
  fleets,
  general,
  health,
  invites,
  overview,
  pairing,
  roles,
  rollouts,
  security,
  sessions,
  tenants,
  traces,
  volumes,
  webhooks,
};

/** The guide to `group.operation`; empty if there is none. */
export const guideOf = (id: string): OperationGuide => {
  const [group = "", name = ""] = id.split(".");
  return GUIDES[group as keyof Contract]?.[name] ?? {};
};

/** The groups of the API, in the interface's order: documents and viewers show them so. */
export const TAGS: Readonly<Record<string, string>> = {
  "Health and Status": "For load balancers, supervisors and status pages. No credential needed.",
  Overview: "How the whole tenant is doing, and what needs somebody first.",
  Pairing: "How a machine becomes a device of a tenant: with a code that a person confirms, or with an enrollment token.",
  Devices: "The machines that run an agent. They are also called hosts.",
  Agent: "An agent's calls about its own device, signed with the device's secret.",
  Commands:
    "Work for devices. People and scripts queue commands, the gateway delivers them until the agent acknowledges them, and each can be followed to its end.",
  Apps: "Applications that devices run, and the catalogue that they come from.",
  Deployments: "What people deploy to devices: a template with a configuration, its revisions and the way back. One without a template groups devices.",
  Backups: "Copies of apps' data in encrypted repositories, where they go, and restores from them.",
  "Backup Policies": "Which apps are backed up when, and how long their backups stay.",
  Volumes: "The data of apps on devices, as their agents find it.",
  Tenants: "The accounts to which all other resources belong.",
  Billing: "Plans, subscriptions, usage and invoices.",
  Cost: "What machines cost by the tenant's own rates and their measured use, to whom that is allocated, what is expected, and budgets.",
  Announcements: "What the people who run the installation tell everybody who uses it, such as a maintenance.",
  Impersonations: "How an administrator of the installation acts as a member for a while, and how the tenant sees and ends it.",
  Administration: "The installation's gateway nodes and tenants. For administrators of the installation.",
  Alerts: "Rules over what devices report and what happens, the alerts that they open, silences, and the channels that tell people of alerts.",
  Traces: "Where time went: spans that programs and agents send over OTLP, joined with the calls and commands that the gateway handled.",
  "Fleet Management":
    "Groups of devices: named one by one, or chosen by a rule. Members, API keys and invites can be limited to fleets, and rollouts update them in phases that stop by themselves when too many devices fail.",
  Roles: "Who may do what: roles, the permissions that they consist of, and the members who have them.",
  Invites: "How people become members of a tenant: by a link that works once and for one address.",
  Account: "Sign-in and sessions of people, the signed-in user's own account, and API keys for scripts and third parties, which only signed-in users manage.",
  "Mesh Routes": "Networks, names and hosts that some devices reach by way of others, through the gateway and only with approval.",
  Tunnels: "Ways from outside to a service of a device, without an open port there: who may come in, and how they fare.",
  "Custom Domains":
    "Names of the tenant's own under which visitors reach its tunnels: the DNS records that they need, what was found instead, and their certificates.",
  Webhooks: "Events of the tenant, sent to URLs that it names, signed and until they arrive; and the log of events.",
  Security:
    "What looks like an attack, the alerts that rules raise from it, and who is blocked. Events that belong to no tenant are for administrators of the installation.",
  "Bulk Operations":
    "One change of many devices, apps, deployments or alerts: it goes on in steps, survives restarts, and keeps a result for each target until all have one.",
  Batch: "Several calls in one request, one after the other.",
  "Data Export": "All that a tenant has as one signed file, and back from such a file.",
  "Saved views": "Searches of a list that people keep under a name, for themselves or for all of the tenant.",
  Audit: "Who changed what, when and from where. Each record is chained to the one before it by hashes.",
  General: "Facts about the service and the caller: version, limits, error codes, changes, sign-in, tickets for live streams.",
};

// The guides to all operations that REST serves, and a sentence on each tag.
import type { Contract } from "../index.ts";
import { account } from "./account.ts";
import { admin } from "./admin.ts";
import { agent } from "./agent.ts";
import { alerts } from "./alerts.ts";
import { apiKeys } from "./api-keys.ts";
import { apps } from "./apps.ts";
import { audit } from "./audit.ts";
import { billing } from "./billing.ts";
import { commands } from "./commands.ts";
import { deployments } from "./deployments.ts";
import { devices } from "./devices.ts";
import { fleets } from "./fleets.ts";
import { general } from "./general.ts";
import type { OperationGuide } from "./guide.ts";
import { health } from "./health.ts";
import { invites } from "./invites.ts";
import { pairing } from "./pairing.ts";
import { roles } from "./roles.ts";
import { security } from "./security.ts";
import { sessions } from "./sessions.ts";
import { tenants } from "./tenants.ts";
import { traces } from "./traces.ts";
import { webhooks } from "./webhooks.ts";

export type { OperationGuide } from "./guide.ts";
export * from "./records.ts";

const GUIDES: { readonly [G in keyof Contract]?: Readonly<Record<string, OperationGuide>> } = {
  account,
  admin,
  agent,
  alerts,
  apiKeys,
  apps,
  audit,
  billing,
  commands,
  deployments,
  devices,
  fleets,
  general,
  health,
  invites,
  pairing,
  roles,
  security,
  sessions,
  tenants,
  traces,
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
  Pairing: "How a machine becomes a device of a tenant: with a code that a person confirms, or with an enrollment token.",
  Devices: "The machines that run an agent. They are also called hosts.",
  Agent: "An agent's calls about its own device, signed with the device's secret.",
  Commands:
    "Work for devices. People and scripts queue commands, the gateway delivers them until the agent acknowledges them, and each can be followed to its end.",
  Apps: "Applications that devices run, and the catalogue that they come from.",
  Deployments: "What people deploy to devices: a template with a configuration, its revisions and the way back. One without a template groups devices.",
  Tenants: "The accounts to which all other resources belong.",
  Billing: "Plans, subscriptions, usage and invoices.",
  Administration: "The installation's gateway nodes and tenants. For administrators of the installation.",
  Alerts: "Rules over what devices report and what happens, the alerts that they open, silences, and the channels that tell people of alerts.",
  Traces: "Where time went: spans that programs and agents send over OTLP, joined with the calls and commands that the gateway handled.",
  "Fleet Management": "Groups of devices: named one by one, or chosen by a rule. Members, API keys and invites can be limited to fleets.",
  Roles: "Who may do what: roles, the permissions that they consist of, and the members who have them.",
  Invites: "How people become members of a tenant: by a link that works once and for one address.",
  Account: "Sign-in and sessions of people, the signed-in user's own account, and API keys for scripts and third parties, which only signed-in users manage.",
  Webhooks: "Events of the tenant, sent to URLs that it names, signed and until they arrive; and the log of events.",
  Security:
    "What looks like an attack, the alerts that rules raise from it, and who is blocked. Events that belong to no tenant are for administrators of the installation.",
  Audit: "Who changed what, when and from where. Each record is chained to the one before it by hashes.",
  General: "Facts about the service and the caller: version, limits, error codes, changes, sign-in, tickets for live streams.",
};

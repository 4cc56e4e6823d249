// The guide to every operation that REST serves, by the names of the contract, and a sentence on each group of them.
import type { Contract } from "../index.ts";
import { admin } from "./admin.ts";
import { agent } from "./agent.ts";
import { apiKeys } from "./api-keys.ts";
import { commands } from "./commands.ts";
import { devices } from "./devices.ts";
import { general } from "./general.ts";
import type { OperationGuide } from "./guide.ts";
import { health } from "./health.ts";
import { pairing } from "./pairing.ts";
import { tenants } from "./tenants.ts";

export type { OperationGuide } from "./guide.ts";
export * from "./records.ts";

const GUIDES: { readonly [G in keyof Contract]?: Readonly<Record<string, OperationGuide>> } = {
  admin,
  agent,
  apiKeys,
  commands,
  devices,
  general,
  health,
  pairing,
  tenants,
};

/** Of `group.operation`; empty for what nobody has described. */
export const guideOf = (id: string): OperationGuide => {
  const [group = "", name = ""] = id.split(".");
  return GUIDES[group as keyof Contract]?.[name] ?? {};
};

export const TAGS: Readonly<Record<string, string>> = {
  Account: "API keys for scripts and third parties. Only signed-in users manage them.",
  Administration: "For those who run the installation: its gateway nodes.",
  Agent: "What an agent asks and tells about itself, signed with its own secret.",
  Commands: "Work for devices: queued by people and scripts, delivered once to the agent, followed to its end.",
  Devices: "The machines that run an agent, also addressed as hosts.",
  General: "The service about itself and its caller: limits, errors, changes, sign-in, tickets for live streams.",
  "Health and Status": "For load balancers, supervisors and status pages. No credential is needed.",
  Pairing: "How a machine becomes a device of a tenant, by a code that a person confirms or by an enrollment token.",
  Tenants: "The accounts that everything else belongs to.",
};

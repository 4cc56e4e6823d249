// How a record of each kind is made and changed: by the operations that people use. A kind that is not here is never imported, such as a device's identity.
import type { z } from "zod";
import { type NamedOperation, operationNamed } from "../../core/own-calls.ts";
import type { Data } from "./wanted.ts";

export interface ImportedKind {
  /** Absent: an import changes such records and makes none. */
  readonly create?: NamedOperation;
  readonly update?: NamedOperation;
  /** Absent: an import deletes no such record. */
  readonly remove?: NamedOperation;
  /** Goes with each deletion. */
  readonly removeWith?: Data;
  /** Names of fields in the record that the operations call otherwise. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** What names a record when no other has the same, besides its key. */
  readonly alias?: (record: Data) => unknown;
  /** Fields that only the operation that creates takes, and no record shows: they cannot be compared. */
  readonly hidden?: readonly string[];
  /** Fields that the record completes by itself: a wish names some of their parts, and those count. */
  readonly completes?: readonly string[];
  /** Goes with each creation. */
  readonly always?: Data;
  /** Only these fields. */
  readonly only?: readonly string[];
}

const byName = ({ name }: Data): unknown => name;

export const IMPORTED_KINDS: Readonly<Record<string, ImportedKind>> = {
  settings: { update: "tenants.updateSettings" },
  "update-policy": { create: "rollouts.createPolicy", update: "rollouts.updatePolicy", remove: "rollouts.removePolicy" },
  fleet: { create: "fleets.create", update: "fleets.update", remove: "fleets.remove" },
  device: { update: "devices.update", alias: byName, only: ["name", "tags", "maintenance"] },
  role: { create: "roles.create", update: "roles.update", remove: "roles.remove", alias: byName },
  member: { create: "invites.create", update: "roles.updateMember", only: ["email", "roleId", "selector"] },
  deployment: {
    create: "deployments.create",
    update: "deployments.change",
    remove: "deployments.remove",
    // A file that lacks a deployment does not say that its data is to go.
    removeWith: { keepVolumes: true },
    renamed: { template: "appName" },
    hidden: ["secrets"],
    completes: ["configuration"],
  },
  "backup-destination": {
    create: "backupDestinations.create",
    update: "backupDestinations.change",
    remove: "backupDestinations.remove",
    hidden: ["credentials"],
  },
  // Apps come later.
  "backup-policy": { create: "backupPolicies.create", update: "backupPolicies.change", remove: "backupPolicies.remove", always: { allowEmpty: true } },
  channel: { create: "alerts.createChannel", update: "alerts.updateChannel", remove: "alerts.removeChannel", hidden: ["config"] },
  "alert-rule": { create: "alerts.createRule", update: "alerts.updateRule", remove: "alerts.removeRule" },
  webhook: { create: "webhooks.create", update: "webhooks.update", remove: "webhooks.remove", alias: ({ url }) => url, hidden: ["secret", "headers"] },
  view: { create: "views.create", update: "views.update", remove: "views.remove" },
  tunnel: { create: "tunnels.create", update: "tunnels.update", remove: "tunnels.remove" },
  domain: { create: "domains.create", update: "domains.update", remove: "domains.remove" },
  "mesh-route": { create: "meshRoutes.create", update: "meshRoutes.update", remove: "meshRoutes.remove" },
  "security-rule": { create: "security.createRule", update: "security.updateRule", remove: "security.removeRule" },
  budget: { create: "costs.createBudget", update: "costs.updateBudget", remove: "costs.removeBudget" },
};

type Shape = Readonly<Record<string, z.ZodType>>;
interface Shaped {
  readonly shape?: Shape;
  readonly def?: { readonly in?: unknown; readonly innerType?: unknown };
}
const shapeOf = (change: NamedOperation): Shape => {
  let schema = operationNamed(change).input as unknown as Shaped | undefined; // as: each input is an object, perhaps with checks around it
  while (schema !== undefined && schema.shape === undefined) schema = (schema.def?.in ?? schema.def?.innerType) as Shaped | undefined;
  return schema?.shape ?? {};
};
/** The names of the fields that an operation takes. */
export const fieldsOf = (change: NamedOperation): ReadonlySet<string> => new Set(Object.keys(shapeOf(change)));
export const schemaOf = (change: NamedOperation, field: string): z.ZodType | undefined => shapeOf(change)[field];
/** All that the operations of a kind take. */
export const takenBy = ({ create, update }: ImportedKind): ReadonlySet<string> =>
  new Set([create, update].flatMap((change) => (change === undefined ? [] : [...fieldsOf(change)])));

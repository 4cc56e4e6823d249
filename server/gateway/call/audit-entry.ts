// What the audit log says of a call, all of it derived from the contract: an operation that it declares has its record without a line of its own.

import { isAppError } from "../../core/errors.ts";
import { type AuditEntry, auditActorOf } from "../../core/ports/audit.ts";
import type { OpenScope } from "../../core/scope.ts";
import type { Entry } from "./operation-table.ts";

const actorOfCall = ({ op }: Entry, { principal }: OpenScope): AuditEntry["actor"] => {
  if (principal === null) return { type: "anonymous", id: "anonymous", email: null };
  const actor = auditActorOf(principal);
  return op.permission === "platform" ? { ...actor, type: "operator" } : actor;
};

const MAX_ID = 128;
const field = (from: unknown, name: string): string | null => {
  const value = typeof from === "object" && from !== null ? Reflect.get(from, name) : undefined;
  return typeof value === "string" ? value.slice(0, MAX_ID).toWellFormed() : null;
};

/** The last field of the path names the resource, the segment before it the type; for a creation its `location` does. */
const resourceOf = ({ op, group }: Entry, input: unknown, result: unknown): AuditEntry["resource"] => {
  const path = op.rest[0]?.split(" ")[1] ?? `/${group}`;
  const [, type, name] = [...path.matchAll(/([^/{}]+)\/\{(\w+)\}/g)].at(-1) ?? [];
  if (type !== undefined && name !== undefined) return { type, id: field(input, name) };
  const [, made, by] = /([^/{}]+)\/\{(\w+)\}$/.exec(op.location ?? "") ?? [];
  return made === undefined || by === undefined ? { type: path.split("/").at(-1) ?? group, id: null } : { type: made, id: field(result, by) };
};

export const auditEntryOf = (entry: Entry, scope: OpenScope, { input, result }: { readonly input: unknown; readonly result: unknown }): AuditEntry => ({
  // An operation that concerns no tenant may still change one: a new tenant's log begins with its creation.
  tenantId: entry.op.tenancy === "tenant" ? scope.tenantId : null,
  actor: actorOfCall(entry, scope),
  action: entry.id,
  resource: resourceOf(entry, input, result),
  code: isAppError(result) ? result.code : null,
  call: scope,
});

// Audit records as lines for other programs: NDJSON, or CSV that a spreadsheet opens without running any of it.
import type { AuditLog } from "../../../protocol/index.ts";
import { csvLine } from "../../core/rows/csv.ts";

const COLUMNS: Readonly<Record<string, (log: AuditLog) => unknown>> = {
  sequence: ({ sequence }) => sequence,
  at: ({ at }) => at,
  auditId: ({ auditId }) => auditId,
  tenantId: ({ tenantId }) => tenantId,
  actorType: ({ actor }) => actor.type,
  actorId: ({ actor }) => actor.id,
  actorEmail: ({ actor }) => actor.email,
  ip: ({ actor }) => actor.ip,
  userAgent: ({ actor }) => actor.userAgent,
  action: ({ action }) => action,
  resourceType: ({ resource }) => resource.type,
  resourceId: ({ resource }) => resource.id,
  outcome: ({ outcome }) => outcome,
  code: ({ code }) => code,
  requestId: ({ requestId }) => requestId,
  changes: ({ changes }) => JSON.stringify(changes),
  omitted: ({ omitted }) => omitted,
  previousHash: ({ previousHash }) => previousHash,
  hash: ({ hash }) => hash,
};

export type Format = "ndjson" | "csv";

/** What stands before the first record. */
export const headOf = (format: Format): string => (format === "csv" ? csvLine(Object.keys(COLUMNS)) : "");

export const lineOf = (log: AuditLog, format: Format): string =>
  format === "csv" ? csvLine(Object.values(COLUMNS).map((read) => read(log))) : `${JSON.stringify(log)}\n`;

// The audit log: one record for each change, written with it, chained by hashes, read by a tenant's administrators and by operators.

import { type AuditLog, contract, type TenantId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import { implement } from "../../core/feature.ts";
import { findActors } from "../../core/people/actors.ts";
import type { AuditTrail } from "../../core/ports/audit.ts";
import { INSTALLATION } from "../../core/ports/security.ts";
import { actorOfUser } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import type { Feature } from "../kit.ts";
import { createChainSigner, hex, type SealedRow } from "./chain.ts";
import { type Format, headOf, lineOf } from "./export.ts";
import { resignChains } from "./resign.ts";
import { createRetention } from "./retention.ts";
import { type AuditFilter, findLog, loggedTenants, logsOfActor, matchesAfter, pageOfLogs } from "./store.ts";
import { createAuditTrail } from "./trail.ts";
import { type Verdict, verifyTenant } from "./verify.ts";

export { createAuditTrail } from "./trail.ts";
export type { Verdict } from "./verify.ts";

export interface AuditDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly secretBox: Pick<SecretBox, "deriveAll">;
  readonly keepDays: number;
}

export interface AuditFeature extends Feature<typeof contract.audit> {
  readonly trail: AuditTrail;
  /** What a user did in these tenants and outside of tenants, newest first. */
  recordsOf(db: Clients, actorId: string, tenantIds: readonly string[], limit: number): Promise<readonly AuditLog[]>;
  /** One tenant's log, or all of them one after another. */
  verify(tenantId?: string): AsyncIterable<Verdict>;
  /** Signs every chain again after the master key has changed; returns how many. A wrong signature stays. */
  resign(): Promise<number>;
  /** One tenant's log as lines, oldest first, in pieces. */
  exportAll(tenantId: string, format: Format): AsyncIterable<string>;
}

const toLog = ({ tenantId, at, actorType, actorId, actorEmail, ip, userAgent, resourceType, resourceId, ...row }: SealedRow): AuditLog => ({
  ...row,
  auditId: row.auditId as AuditLog["auditId"],
  tenantId: tenantId === INSTALLATION ? null : tenantId,
  at: at.toISOString(),
  actor: { type: actorType as AuditLog["actor"]["type"], id: actorId, email: actorEmail, ip, userAgent },
  resource: { type: resourceType, id: resourceId },
  outcome: row.outcome as AuditLog["outcome"],
  changes: row.changes as AuditLog["changes"],
  hash: hex(row.hash),
  previousHash: hex(row.previousHash),
});

/** As `actorOf` writes it. */
const actorIdOf = ({ actorType, actorId }: SealedRow): string => (actorType === "user" ? actorOfUser(actorId) : actorId);

// An answer holds so much text at most, however large the records are.
const EXPORT_CHARACTERS = 8_000_000;
const EXPORT_BATCH = 500;

/** Reads the first pieces before the answer begins, so that a database that is away is an error and no broken answer. */
const begun = async (pieces: AsyncGenerator<string, void>): Promise<AsyncIterable<string>> => {
  const [head, first] = [await pieces.next(), await pieces.next()];
  return (async function* () {
    yield `${head.value ?? ""}${first.value ?? ""}`;
    yield* pieces;
  })();
};

export const createAudit = ({ db, clock, secretBox, keepDays }: AuditDeps): AuditFeature => {
  const signer = createChainSigner(secretBox);
  const page = async (tenantId: string, query: Parameters<typeof pageOfLogs>[2]) => {
    const { items, ...rest } = await pageOfLogs(db, tenantId, query);
    return { items: await named(items), ...rest };
  };
  /** All rows belong to one tenant. */
  const named = async (rows: readonly SealedRow[]): Promise<AuditLog[]> => {
    const [{ tenantId } = { tenantId: INSTALLATION }] = rows;
    const actorOf = await findActors(db, { tenantId: tenantId as TenantId }, rows.map(actorIdOf));
    return rows.map((row) => {
      const log = toLog(row);
      return { ...log, actor: { ...log.actor, name: actorOf(actorIdOf(row)).name } };
    });
  };
  const linesOf = async function* (tenantId: string, format: Format, { after: from, ...filter }: AuditFilter & { readonly after: number }) {
    yield headOf(format);
    for (let after: number | null = from; after !== null; ) {
      const found: Awaited<ReturnType<typeof matchesAfter>> = await matchesAfter(db, tenantId, { ...filter, after, limit: EXPORT_BATCH });
      yield found.rows.map((row) => lineOf(toLog(row), format)).join("");
      after = found.next;
    }
  };
  return {
    handlers: implement(contract.audit, {
      list: ({ scope }, query) => page(scope.tenantId, query),
      listInstallation: (_call, { tenant = INSTALLATION, ...query }) => page(tenant, query),
      get: async ({ scope, fail }, { auditId }) => {
        const row = await findLog(db, scope.tenantId, auditId);
        if (row === null) throw fail("AUDIT_LOG_NOT_FOUND", { auditId });
        const [log = toLog(row)] = await named([row]);
        return log;
      },
      exportLines: ({ scope }, query) => begun(linesOf(scope.tenantId, "ndjson", query)),
      export: async ({ scope }, { format, after, max, ...filter }) => {
        const found = await matchesAfter(db, scope.tenantId, { ...filter, after, limit: max });
        const lines = [headOf(format)];
        let [count, characters] = [0, 0];
        for (const row of found.rows) {
          const line = lineOf(toLog(row), format);
          if (count > 0 && characters + line.length > EXPORT_CHARACTERS) break;
          lines.push(line);
          [count, characters] = [count + 1, characters + line.length];
        }
        const next = count < found.rows.length ? (found.rows[count - 1]?.sequence ?? null) : found.next;
        return { format, count, next, content: lines.join("") };
      },
    }),
    jobs: [createRetention({ db, clock, signer, keepDays })],
    trail: createAuditTrail({ secretBox }),
    recordsOf: async (clients, actorId, tenantIds, limit) => (await logsOfActor(clients, actorId, [...tenantIds, INSTALLATION], limit)).map(toLog),
    verify: async function* (tenantId) {
      for (const each of tenantId === undefined ? await loggedTenants(db) : [tenantId]) yield await verifyTenant(db, each, signer);
    },
    resign: () => resignChains(db, signer),
    exportAll: (tenantId, format) => linesOf(tenantId, format, { after: 0 }),
  };
};

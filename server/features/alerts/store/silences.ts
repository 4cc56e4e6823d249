// Rows of silences.
import { AlertSilence, type Page, SilenceMatcher } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { type RowOf, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";

const toSilence = (row: Omit<RowOf<typeof AlertSilence>, "active"> & { readonly startsAt: Date; readonly endsAt: Date }, now: Date): AlertSilence =>
  recordOf(AlertSilence, { ...row, matchers: SilenceMatcher.array().parse(row.matchers), active: row.startsAt <= now && row.endsAt > now });

const list = createListing("alertSilences", { createdAt: { kind: "time" }, endsAt: { kind: "time" } }, { column: "silenceId", kind: "text" });
type SilencesQuery = Parameters<typeof list>[0] & { readonly active?: boolean | undefined };

export const pageOfSilences = (db: Clients, scope: SystemScope, query: SilencesQuery, now: Date): Promise<Page<AlertSilence>> => {
  const { alertSilence } = db.for(scope);
  const isActive = { startsAt: { lte: now }, endsAt: { gt: now } };
  const where = query.active === undefined ? {} : query.active ? isActive : { NOT: isActive };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => alertSilence.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => alertSilence.count({ where }),
    record: (row) => toSilence(row, now),
  });
};

export const findSilence = async (db: Clients, scope: SystemScope, silenceId: string, now: Date): Promise<AlertSilence | null> => {
  const row = await db.for(scope).alertSilence.findFirst({ where: { silenceId } });
  return row === null ? null : toSilence(row, now);
};

export interface NewSilence {
  readonly silenceId: string;
  readonly matchers: SilenceMatcher[];
  readonly startsAt: Date;
  readonly endsAt: Date;
  readonly comment: string;
  readonly createdBy: string;
}
export const insertSilence = async (db: Clients, scope: SystemScope, silence: NewSilence, now: Date): Promise<AlertSilence> =>
  toSilence(await db.for(scope).alertSilence.create({ data: silence }), now);

/** The number of silences that are not over. */
export const countSilences = (db: Clients, scope: SystemScope, now: Date): Promise<number> =>
  db.for(scope).alertSilence.count({ where: { endsAt: { gt: now } } });

/** False when it is gone. */
export const deleteSilence = async (db: Clients, scope: SystemScope, silenceId: string): Promise<boolean> =>
  (await db.for(scope).alertSilence.deleteMany({ where: { silenceId } })).count === 1;

const SWEEP_ROWS = 1_000;
/** True when there may be more. */
export const deleteOldSilences = async (db: Clients, before: Date): Promise<boolean> => {
  const where = { endsAt: { lt: before } };
  return (await db.system.alertSilence.deleteMany({ where, limit: SWEEP_ROWS })).count === SWEEP_ROWS;
};

// Rows of saved views.
import { type Page, SavedView } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import { createListing } from "../../core/rows/listing.ts";
import { given, type RowOf, recordOf } from "../../core/rows/records.ts";
import { ownerOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import { LOCK } from "../../core/statements.ts";

const toView = (row: RowOf<typeof SavedView>): SavedView => recordOf(SavedView, row);

const seenBy = ({ principal }: TenantScope) => ({ OR: [{ createdBy: ownerOf(principal) }, { shared: true }] });

const list = createListing("views", { name: { kind: "text" }, createdAt: { kind: "time" } }, { column: "viewId", kind: "text" });
type ViewsQuery = Parameters<typeof list>[0] & { readonly place?: string | undefined };

export const pageOfViews = (db: Clients, scope: TenantScope, query: ViewsQuery): Promise<Page<SavedView>> => {
  const { savedView } = db.for(scope);
  const where = { AND: [seenBy(scope), given({ place: query.place })] };
  return list(query, {
    owner: `${scope.tenantId} ${ownerOf(scope.principal)}`,
    rows: (asked) => savedView.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: () => savedView.count({ where }),
    record: toView,
  });
};

export const findView = async (db: Clients, scope: TenantScope, viewId: string): Promise<SavedView | null> => {
  const row = await db.for(scope).savedView.findFirst({ where: { AND: [{ viewId }, seenBy(scope)] } });
  return row === null ? null : toView(row);
};

/** Until the transaction ends, nobody else saves a view in this tenant. */
export const lockViews = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`views of ${tenantId}`]);
};

export const countViews = async (db: Clients, scope: SystemScope, createdBy: string): Promise<{ readonly own: number; readonly all: number }> => {
  const { savedView } = db.for(scope);
  const [own, all] = [await savedView.count({ where: { createdBy } }), await savedView.count()];
  return { own, all };
};

type NewView = Pick<SavedView, "place" | "name" | "search" | "shared" | "createdBy">;
export const insertView = async (tx: Clients, scope: SystemScope, data: NewView): Promise<SavedView> =>
  toView(await tx.for(scope).savedView.create({ data: { ...data, viewId: newId("vw") } }));

export interface ViewChange {
  readonly viewId: string;
  /** Changes nothing unless this is the present version; undefined skips the check. */
  readonly version?: number | undefined;
  readonly name?: string | undefined;
  readonly search?: string | undefined;
  readonly shared?: boolean | undefined;
}
/** Null when the view has another version or is gone. */
export const updateView = async (tx: Clients, scope: TenantScope, { viewId, version, ...fields }: ViewChange): Promise<SavedView | null> => {
  const where = { AND: [{ viewId, ...given({ version }) }, seenBy(scope)] };
  const [row] = await tx.for(scope).savedView.updateManyAndReturn({ where, data: { ...given(fields), version: { increment: 1 } } });
  return row === undefined ? null : toView(row);
};

/** False when it is gone. */
export const deleteView = async (tx: Clients, scope: TenantScope, viewId: string): Promise<boolean> =>
  (await tx.for(scope).savedView.deleteMany({ where: { AND: [{ viewId }, seenBy(scope)] } })).count === 1;

// Changes of many apps at once, each for all of them in one statement.
import type { SqlTx } from "../../../core/events.ts";
import { newId } from "../../../core/ids.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import type { AppRow } from "./app-row.ts";
import { type Content, KEPT_AUTOMATIC } from "./snapshots.ts";

const LOCK = statement<{ readonly app_id: string }>(
  "apps.lockMany",
  "select a.app_id from apps a where a.tenant_id = $1 and a.app_id = any($2::text[]) order by a.app_id for no key update",
);
/** Until the transaction ends, nobody else changes these apps. */
export const lockApps = async (tx: SqlTx, { tenantId }: SystemScope, appIds: readonly string[]): Promise<void> => {
  await tx.query(LOCK, [tenantId, appIds]);
};

const RAISE = statement<{ readonly device_id: string; readonly version: number }>(
  "apps.raiseDesiredOfMany",
  `insert into desired_versions (tenant_id, device_id, version) select $1, d.device_id, 1 from (select distinct unnest($2::text[]) as device_id order by 1) d
     on conflict (tenant_id, device_id) do update set version = desired_versions.version + 1 returning device_id, version`,
);
/** The new version of each device. Until the transaction ends, nobody else changes what these should run. */
export const raiseDesiredOfMany = async (tx: SqlTx, { tenantId }: SystemScope, deviceIds: readonly string[]): Promise<ReadonlyMap<string, number>> =>
  new Map((await tx.query(RAISE, [tenantId, deviceIds])).map(({ device_id, version }) => [device_id, version]));

interface ContentRow {
  readonly app_id: string;
  readonly app_type: string;
  readonly template_version: string;
  readonly config: Content["config"];
  readonly spec: Content["spec"];
}
const FIND_CONTENTS = statement<ContentRow>(
  "apps.findContents",
  `select distinct on (s.app_id) s.app_id, s.app_type, s.template_version, s.config, s.spec
     from unnest($2::text[], $3::int[]) as w(app_id, revision) join app_snapshots s on s.tenant_id = $1 and s.app_id = w.app_id and s.revision = w.revision
    order by s.app_id, s.snapshot_id desc`,
);
/** What each app was in that revision; one of which no snapshot tells is missing. */
export const findContents = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  wanted: readonly { readonly appId: string; readonly revision: number }[],
): Promise<ReadonlyMap<string, Content>> => {
  if (wanted.length === 0) return new Map();
  const rows = await tx.query(FIND_CONTENTS, [tenantId, wanted.map(({ appId }) => appId), wanted.map(({ revision }) => revision)]);
  return new Map(
    rows.map(({ app_id, app_type: appType, template_version: templateVersion, config, spec }) => [app_id, { appType, templateVersion, config, spec }]),
  );
};

const KEEP = statement(
  "apps.insertSnapshots",
  `with old as (delete from app_snapshots s where s.tenant_id = $1 and s.snapshot_id = any(array(
       select r.snapshot_id from (select o.snapshot_id, row_number() over (partition by o.app_id order by o.snapshot_id desc) as place from app_snapshots o
         where o.tenant_id = $1 and o.app_id = any($2::text[]) and o.automatic) r where r.place >= $5)))
   insert into app_snapshots (snapshot_id, tenant_id, app_id, revision, app_type, template_version, config, spec, automatic, created_by)
   select w.snapshot_id, a.tenant_id, a.app_id, a.revision, a.app_type, a.template_version, a.config, a.spec, true, $4
     from unnest($2::text[], $3::text[]) as w(app_id, snapshot_id) join apps a on a.tenant_id = $1 and a.app_id = w.app_id`,
);
/** An automatic snapshot of what each of these apps is now. Only the newest five automatic ones stay. */
export const insertSnapshots = async (tx: SqlTx, { tenantId }: SystemScope, apps: readonly AppRow[], by: string) => {
  const made = apps.map(({ appId, revision }) => ({ appId, revision, snapshotId: newId("snp") }));
  const ids = [made.map(({ appId }) => appId), made.map(({ snapshotId }) => snapshotId)];
  await tx.query(KEEP, [tenantId, ...ids, by, KEPT_AUTOMATIC]);
  return made;
};

const SAVE = statement(
  "apps.saveUpdated",
  `update apps a set status = n.status, app_type = n.app_type, template_version = n.template_version, config = n.config, spec = n.spec, desired_state = n.desired_state,
      revision = n.revision, last_revision = n.last_revision, desired_version = n.desired_version, command_id = n.command_id, cancel_asked = false, failure = null,
      timeline = n.timeline, version = a.version + 1, updated_at = now()
     from json_to_recordset($2::json) as n(app_id text, status text, app_type text, template_version text, config jsonb, spec jsonb, desired_state text, revision int,
       last_revision int, desired_version int, command_id text, timeline json)
    where a.tenant_id = $1 and a.app_id = n.app_id`,
);
/** Writes apps that are locked and have got an order to update. */
export const saveUpdated = async (tx: SqlTx, { tenantId }: SystemScope, apps: readonly AppRow[]): Promise<void> => {
  const rows = apps.map((app) => ({
    app_id: app.appId,
    status: app.status,
    app_type: app.appType,
    template_version: app.templateVersion,
    config: app.config,
    spec: app.spec,
    desired_state: app.desiredState,
    revision: app.revision,
    last_revision: app.lastRevision,
    desired_version: app.desiredVersion,
    command_id: app.commandId,
    timeline: app.timeline,
  }));
  if (rows.length > 0) await tx.query(SAVE, [tenantId, JSON.stringify(rows)]);
};

// Freezes the devices of a rollout, chunk by chunk: in the order of a hash, devices with the tag of a phase first, and with the reason of those that do not
// take part.
import type { FleetSelector } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { SqlTx } from "../../../core/events.ts";
import { matchesAnyRule } from "../../../core/people/fleet-rules.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

/** The devices that one statement freezes, so that none takes seconds. */
export const CHUNK = 10_000;

/** The rollout, and what its devices are to run. */
export interface FreezeAsked {
  readonly rolloutId: string;
  readonly subject: string;
  /** Null: an agent. */
  readonly template: string | null;
  readonly version: string;
  readonly configuration: object | null;
  /** The tags of the phases, in their order. */
  readonly tags: readonly string[];
}
export interface OfFleet {
  readonly fleetId: string;
  readonly selector: FleetSelector | null;
  /** Only devices that no rollout has brought this version so far. */
  readonly onlyNew: boolean;
}
export interface OfParent {
  readonly parentId: string;
  /** What of the parent: its failures again, or everything back. */
  readonly kind: "retry" | "rollback";
}

const KEY =
  "lpad(coalesce((select min(t.place) from unnest($6::text[]) with ordinality as t(tag, place) where t.tag = any(d.tags)), 99)::text, 2, '0') || md5($2 || d.device_id)";

const IN_FLEET = `((($7::jsonb is null and d.fleet_ids @> array[$8::text]) or ($7::jsonb is not null and ${matchesAnyRule("d", "$7::jsonb")}))
  and (not $9::boolean or not exists (select from rollout_devices o join rollouts r on r.tenant_id = o.tenant_id and r.rollout_id = o.rollout_id
    where o.tenant_id = d.tenant_id and o.device_id = d.device_id and r.subject = $3 and r.target ->> 'version' = $5 and r.rollout_id <> $2)))`;

const APPS = `left join lateral (select count(*) as apps, min(a.app_id) as app_id from apps a
    where a.tenant_id = d.tenant_id and a.device_id = d.device_id and a.app_type = $4 and a.removed_at is null) n on $4::text is not null
  left join apps a on a.tenant_id = d.tenant_id and a.app_id = n.app_id`;

const ELSEWHERE = `exists (select from rollout_devices o where o.tenant_id = d.tenant_id and o.device_id = d.device_id and o.subject = $3
    and o.status in ('pending', 'ordered', 'verifying') and o.rollout_id <> $2)`;

/** Why a device does not take part; null: it does. */
const skippedAs = (configuration: string): string => `case
    when $4::text is null and d.agent_version = $5 then 'ALREADY_THERE'
    when $4::text is null and string_to_array(d.agent_version, '.') is not null and d.agent_version ~ '^\\d{1,6}\\.\\d{1,6}\\.\\d{1,6}$' and $5 ~ '^\\d{1,6}\\.\\d{1,6}\\.\\d{1,6}$'
      and string_to_array(d.agent_version, '.')::int[] > string_to_array($5, '.')::int[] then 'NOT_APPLICABLE'
    when $4::text is not null and n.apps = 0 then 'NOT_APPLICABLE'
    when $4::text is not null and n.apps > 1 then 'SEVERAL_APPS'
    when $4::text is not null and a.template_version = $5 and a.config @> coalesce(${configuration}::jsonb, '{}') and a.status = 'running'
      and (a.reported ->> 'revision')::int = a.revision then 'ALREADY_THERE'
    when ${ELSEWHERE} then 'ROLLOUT_CONFLICT' end`;

const BEFORE =
  "case when $4::text is null then jsonb_build_object('version', d.agent_version, 'revision', null) else jsonb_build_object('version', a.template_version, 'revision', a.revision) end";

const insertText = (chunk: string, limit: string, from: string): string => `with chunk as (${chunk}),
   numbered as (select c.*, case when c.code is null then ${from} + row_number() over (partition by c.code is null order by c.key) else 0 end as position from chunk c),
   made as (insert into rollout_devices (tenant_id, rollout_id, device_id, subject, position, status, code, app_id, before, revision, finished_at)
     select $1, $2, n.device_id, $3, n.position, case when n.code is null then 'pending' else 'skipped' end, n.code, n.app_id, n.before, n.revision,
       case when n.code is null then null else now() end from numbered n returning status)
   select (select count(*)::int from made m where m.status = 'pending') as pending, (select count(*)::int from made m where m.status = 'skipped') as skipped,
     (select max(c.key) from chunk c) as key, (select count(*) from chunk c) = ${limit} as more`;

export interface FrozenChunk {
  readonly pending: number;
  readonly skipped: number;
  /** Where the next chunk begins; null: there was nothing. */
  readonly key: string | null;
  readonly more: boolean;
}

const FREEZE_FLEET = statement<FrozenChunk>(
  "rollouts.freezeFleet",
  insertText(
    `select d.device_id, ${KEY} as key, ${skippedAs("$13")} as code, n.app_id, ${BEFORE} as before, null::int as revision from devices d ${APPS}
      where d.tenant_id = $1 and d.deleted_at is null and ${IN_FLEET} and ${KEY} > $10 order by 2 limit $11`,
    "$11",
    "$12::int",
  ),
);

export interface FreezePlace {
  /** The key of the last device that is frozen. */
  readonly after: string | null;
  /** How many devices have a position. */
  readonly positions: number;
}

const rulesOf = (selector: FleetSelector | null): string | null => (selector === null ? null : JSON.stringify([selector]));
const askedValues = ({ tenantId }: SystemScope, { rolloutId, subject, template, version, tags }: FreezeAsked): readonly unknown[] => [
  tenantId,
  rolloutId,
  subject,
  template,
  version,
  tags,
];
const jsonOf = (value: object | null): string | null => (value === null ? null : JSON.stringify(value));

export const freezeFleet = async (
  tx: SqlTx,
  scope: SystemScope,
  asked: FreezeAsked,
  { fleet, place }: { readonly fleet: OfFleet; readonly place: FreezePlace },
): Promise<FrozenChunk> => {
  const rest = [rulesOf(fleet.selector), fleet.fleetId, fleet.onlyNew, place.after ?? "", CHUNK, place.positions, jsonOf(asked.configuration)];
  const [frozen] = await tx.query(FREEZE_FLEET, [...askedValues(scope, asked), ...rest]);
  return frozen ?? { pending: 0, skipped: 0, key: null, more: false };
};

const ROLLBACK_CODE = `case when p.before is null or p.revision is null or a.app_id is null then 'NOT_APPLICABLE' when a.revision = (p.before ->> 'revision')::int then 'ALREADY_THERE'
    when a.revision <> p.revision then 'CHANGED_MEANWHILE' when ${ELSEWHERE} then 'ROLLOUT_CONFLICT' end`;

const FREEZE_PARENT = statement<FrozenChunk>(
  "rollouts.freezeParent",
  insertText(
    `select d.device_id, ${KEY} as key, case when $8 = 'retry' then ${skippedAs("$12")} else ${ROLLBACK_CODE} end as code, coalesce(p.app_id, n.app_id) as app_id,
        case when $8 = 'retry' then ${BEFORE} else jsonb_build_object('version', a.template_version, 'revision', a.revision, 'restore', (p.before ->> 'revision')::int) end as before,
        null::int as revision
      from rollout_devices p join devices d on d.tenant_id = p.tenant_id and d.device_id = p.device_id and d.deleted_at is null ${APPS}
      where p.tenant_id = $1 and p.rollout_id = $7 and p.status = any(case when $8 = 'retry' then array['failed', 'timed_out'] else array['succeeded', 'failed', 'timed_out'] end)
        and ${KEY} > $9 order by 2 limit $10`,
    "$10",
    "$11::int",
  ),
);

export const freezeParent = async (
  tx: SqlTx,
  scope: SystemScope,
  asked: FreezeAsked,
  { parent, place }: { readonly parent: OfParent; readonly place: FreezePlace },
): Promise<FrozenChunk> => {
  const rest = [parent.parentId, parent.kind, place.after ?? "", CHUNK, place.positions, jsonOf(asked.configuration)];
  const [frozen] = await tx.query(FREEZE_PARENT, [...askedValues(scope, asked), ...rest]);
  return frozen ?? { pending: 0, skipped: 0, key: null, more: false };
};

const PREVIEW = statement<{ readonly code: string | null; readonly offline: boolean; readonly count: number }>(
  "rollouts.preview",
  `select x.code, x.offline, count(*)::int as count from (select ${skippedAs("$10")} as code, d.status <> 'online' as offline, $6::text[] as tags from devices d ${APPS}
      where d.tenant_id = $1 and d.deleted_at is null and ${IN_FLEET} and ${withinLimits("d", "$11")}) x group by x.code, x.offline`,
);
/** What freezing would do now, of the devices that the caller sees. */
export const previewFleet = (tx: SqlTx, scope: SystemScope, asked: FreezeAsked, fleet: OfFleet) =>
  tx.query(PREVIEW, [...askedValues(scope, asked), rulesOf(fleet.selector), fleet.fleetId, fleet.onlyNew, jsonOf(asked.configuration), limitsValue(scope)]);

const CONFLICTS = statement<{ readonly rollout_id: string; readonly devices: number }>(
  "rollouts.conflicts",
  `select m.rollout_id, count(*)::int as devices from rollout_devices m join devices d on d.tenant_id = m.tenant_id and d.device_id = m.device_id and d.deleted_at is null
    where m.tenant_id = $1 and m.subject = $2 and m.status in ('pending', 'ordered', 'verifying') and m.rollout_id <> $3
      and (($4::jsonb is null and d.fleet_ids @> array[$5::text]) or ($4::jsonb is not null and ${matchesAnyRule("d", "$4::jsonb")})) and ${withinLimits("d", "$6")}
    group by m.rollout_id order by m.rollout_id limit 20`,
);
/** The live rollouts that have the devices of this fleet for the same subject. */
export const findConflicts = (
  tx: SqlTx,
  scope: SystemScope,
  { rolloutId, subject }: Pick<FreezeAsked, "rolloutId" | "subject">,
  fleet: Pick<OfFleet, "fleetId" | "selector">,
) => tx.query(CONFLICTS, [scope.tenantId, subject, rolloutId, rulesOf(fleet.selector), fleet.fleetId, limitsValue(scope)]);

const COMMON = statement<{ readonly devices: number }>(
  "rollouts.commonDevices",
  `select count(*)::int as devices from devices d where d.tenant_id = $1 and d.deleted_at is null
      and (($2::jsonb is null and d.fleet_ids @> array[$3::text]) or ($2::jsonb is not null and ${matchesAnyRule("d", "$2::jsonb")}))
      and (($4::jsonb is null and d.fleet_ids @> array[$5::text]) or ($4::jsonb is not null and ${matchesAnyRule("d", "$4::jsonb")}))`,
);
type FleetRef = Pick<OfFleet, "fleetId" | "selector">;
/** How many devices belong to both fleets. */
export const countCommon = async (tx: SqlTx, { tenantId }: SystemScope, one: FleetRef, other: FleetRef): Promise<number> =>
  (await tx.query(COMMON, [tenantId, rulesOf(one.selector), one.fleetId, rulesOf(other.selector), other.fleetId]))[0]?.devices ?? 0;

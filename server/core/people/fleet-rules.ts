// The selector of a dynamic fleet, applied in three ways: to a device in memory, in raw SQL and in Prisma's conditions.
import type { FleetSelector } from "../../../protocol/index.ts";

/** What selectors look at. */
export interface DeviceTraits {
  readonly deviceId: string;
  readonly tags: readonly string[];
  /** The static fleets that it belongs to. */
  readonly fleetIds: readonly string[];
  readonly platform: string | null;
  readonly agentVersion: string | null;
  readonly status: string;
}

export const matchesRule = ({ tags, platform, agentVersion, status }: FleetSelector, device: DeviceTraits): boolean =>
  tags.every((tag) => device.tags.includes(tag)) &&
  (platform ?? device.platform) === device.platform &&
  (agentVersion ?? device.agentVersion) === device.agentVersion &&
  (status ?? device.status) === device.status;

const same = (field: string): string => `(@.${field} == null || @.${field} == $${field})`;
// jsonpath finds that a tag equals one of none false, never unknown.
const PATH = `$[*] ? (${["platform", "agentVersion", "status"].map(same).join(" && ")} && !exists(@.tags[*] ? (!(@ == $tags[*]))))`;

/** Whether one of the selectors in the JSON array selects the device in the row `d`. One call and no subquery, which would make the planner expect a costly statement. */
export const matchesAnyRule = (d: string, rules: string): string =>
  `jsonb_path_exists(${rules}, '${PATH}', jsonb_build_object('tags', ${d}.tags, 'platform', ${d}.platform, 'agentVersion', ${d}.agent_version, 'status', ${d}.status))`;

export const ruleCondition = ({ tags, ...others }: FleetSelector): Readonly<Record<string, unknown>> => ({
  ...Object.fromEntries(Object.entries(others).filter(([, value]) => value !== null)),
  ...(tags.length === 0 ? {} : { tags: { hasEvery: tags } }),
});

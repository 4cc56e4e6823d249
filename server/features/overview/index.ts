// The overview of a tenant: what each feature counts, in one answer, and the lines of a day.
import { contract, type Overview, type OverviewChange, type OverviewGroups } from "../../../protocol/index.ts";
import { isLimited, permissionsIn } from "../../core/access.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import { becomeLeader } from "../../core/leader-election.ts";
import { sharedTags, type TagTotals } from "../../core/people/common-tag.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { activityOf, deviceOfEvent, type NamedDevices } from "./activity.ts";
import { overviewDayOf } from "./day.ts";
import { countAll, isCounted, lastPointAt, readPoints } from "./store.ts";

export interface TenantOverviewDeps extends Pick<FeatureKit, "db" | "clock"> {
  readonly devices: {
    states(scope: SystemScope): Promise<Omit<Overview["devices"], "total">>;
    groupsByKey(scope: SystemScope, key: string | null): Promise<OverviewGroups>;
    namesAndTags(scope: SystemScope, deviceIds: readonly string[]): Promise<NamedDevices>;
    countTagged(scope: SystemScope, tags: readonly string[]): Promise<TagTotals>;
  };
  /** Numbers of apps by their status. */
  readonly appStates: (scope: SystemScope) => Promise<ReadonlyMap<string, number>>;
  readonly openCommands: (scope: SystemScope) => Promise<NonNullable<Overview["commands"]>>;
  /** What is under way, the newest first. */
  readonly changes: {
    readonly rollouts: (scope: TenantScope, limit: number) => Promise<readonly OverviewChange[]>;
    readonly bulkOperations: (scope: TenantScope, limit: number) => Promise<readonly OverviewChange[]>;
  };
  /** The newest events but for commands that succeeded, newest first. */
  readonly notableEvents: (scope: SystemScope, limit: number) => Promise<readonly DispatchedEvent[]>;
  readonly setup: {
    readonly hasCertificate: () => boolean;
    readonly countChannels: (scope: SystemScope) => Promise<number>;
    readonly countPolicies: (scope: SystemScope) => Promise<number>;
    readonly isHidden: (scope: SystemScope) => Promise<boolean>;
  };
}

const EVENTS = 300;
const CHANGES = 5;
const COUNT_EVERY_MS = 60_000;

const sum = (counts: Iterable<number>): number => [...counts].reduce((total, each) => total + each, 0);

export const createTenantOverview = (deps: TenantOverviewDeps): Feature<typeof contract.overview> => {
  const { db, clock, devices, appStates, openCommands, changes, notableEvents } = deps;

  const changesOf = async (scope: TenantScope): Promise<OverviewChange[]> => {
    const may = permissionsIn(scope);
    const rollouts = may.has("rollout:read") ? await changes.rollouts(scope, CHANGES) : [];
    const operations = may.has("bulk:read") ? await changes.bulkOperations(scope, CHANGES) : [];
    return [...rollouts, ...operations].slice(0, CHANGES);
  };

  const activity = async (scope: TenantScope): Promise<Overview["activity"]> => {
    if (!permissionsIn(scope).has("event:read")) return [];
    const events = await notableEvents(scope, EVENTS);
    const deviceIds = [...new Set(events.flatMap((event) => deviceOfEvent(event) ?? []))];
    const named = await devices.namesAndTags(scope, deviceIds);
    return activityOf(events, named, await devices.countTagged(scope, sharedTags([...named.values()], 2)));
  };

  const setup = async (scope: TenantScope, counts: { readonly devices: number; readonly apps: number }): Promise<Overview["setup"]> => {
    const { hasCertificate, countChannels, countPolicies, isHidden } = deps.setup;
    const steps = [
      ["certificate", hasCertificate()],
      ["device", counts.devices > 0],
      ["app", counts.apps > 0],
      ["channel", (await countChannels(scope)) > 0],
      ["backup", (await countPolicies(scope)) > 0],
    ] as const;
    return { done: steps.flatMap(([step, isDone]) => (isDone ? [step] : [])), hidden: await isHidden(scope) };
  };

  return {
    handlers: implement(contract.overview, {
      get: async ({ scope }, { groupBy }) => {
        const may = permissionsIn(scope);
        const until = lastPointAt(clock.now());
        const states = await devices.states(scope);
        const apps = await appStates(scope);
        const counts = { devices: sum(Object.values(states)), apps: sum(apps.values()) };
        return {
          devices: { total: counts.devices, ...states },
          apps: may.has("app:read") ? { total: counts.apps, error: apps.get("error") ?? 0 } : null,
          commands: may.has("command:read") ? await openCommands(scope) : null,
          day: isLimited(scope) ? null : overviewDayOf(await readPoints(db, scope, until), until),
          groups: await devices.groupsByKey(scope, groupBy ?? null),
          changes: await changesOf(scope),
          activity: await activity(scope),
          setup: await setup(scope, counts),
        };
      },
    }),
    jobs: [
      {
        name: "overview.count",
        everyMs: COUNT_EVERY_MS,
        run: () =>
          db.sqlTx(async (tx) => {
            const at = lastPointAt(clock.now());
            if ((await becomeLeader(tx, "overviewPoints")) && !(await isCounted(tx, at))) await countAll(tx, at);
            return false;
          }),
      },
    ],
  };
};

// Counts what waits for viewers, such as open alerts, so that nobody polls for it: once for all who see the same, and only after something has changed.
import { type Badges, contract } from "../../../protocol/index.ts";
import { deviceLimitsOf, permissionsIn } from "../../core/access.ts";
import { type Happened, happened } from "../../core/events.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import { coalesced } from "../../core/structures/coalesced.ts";

type BadgesEvent = typeof contract.live.events.badges;
/** Open alerts among those that the caller sees. */
export type CountOpenAlerts = (scope: SystemScope) => Promise<number>;

export interface BadgesDeps {
  readonly countOpenAlerts: CountOpenAlerts;
  /** Pause between two reads for the same viewers. */
  readonly pauseMs: number;
  readonly onError: (error: unknown) => void;
}

const COUNTED: ReadonlySet<string> = new Set(Object.values(contract.alerts.events).map(({ type }) => type));

/** Viewers who see the same. */
interface Sharing {
  readonly scope: TenantScope;
  readonly viewers: Set<(badges: Badges) => void>;
  readonly read: () => void;
}

const mayCount = (scope: TenantScope): boolean => permissionsIn(scope).has("alert:read");
const keyOf = (scope: TenantScope): string => `${scope.tenantId} ${JSON.stringify(deviceLimitsOf(scope))}`;

export const createBadges = ({ countOpenAlerts, pauseMs, onError }: BadgesDeps) => {
  const shared = new Map<string, Sharing>();

  const share = (scope: TenantScope): Sharing => {
    const viewers: Sharing["viewers"] = new Set();
    const count = async (): Promise<void> => {
      if (viewers.size === 0) return;
      const alerts = await countOpenAlerts(scope);
      for (const show of viewers) show({ alerts });
    };
    return { scope, viewers, read: coalesced(count, { pauseMs, onError }) };
  };

  return {
    /** Shows the present counts soon, and each change after. Returns the function that ends it. */
    watch: (scope: TenantScope, show: (event: Happened<BadgesEvent>) => void): (() => void) => {
      let last = "";
      const showNew = (badges: Badges): void => {
        const text = JSON.stringify(badges);
        if (text === last) return;
        last = text;
        show(happened(scope, contract.live.events.badges, scope.tenantId, badges));
      };
      if (!mayCount(scope)) {
        showNew({ alerts: null });
        return () => undefined;
      }
      const key = keyOf(scope);
      const sharing = shared.get(key) ?? share(scope);
      shared.set(key, sharing);
      sharing.viewers.add(showNew);
      sharing.read();
      return () => {
        sharing.viewers.delete(showNew);
        if (sharing.viewers.size === 0 && shared.get(key) === sharing) shared.delete(key);
      };
    },
    /** Something happened in the tenant. */
    heard: (tenantId: string, type: string): void => {
      if (!COUNTED.has(type)) return;
      for (const { scope, read } of shared.values()) if (scope.tenantId === tenantId) read();
    },
    /** For what no event tells, and for reads that failed. */
    recheck: (): void => {
      for (const { read } of shared.values()) read();
    },
  };
};

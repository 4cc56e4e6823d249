// Which devices a caller sees, who may be limited to some of them.
import type { TenantId } from "../../../protocol/index.ts";
import { deviceLimitsOf, isLimited, isSelected } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import type { DeviceTraits } from "../../core/people/fleet-rules.ts";
import type { DeviceLookup } from "../../core/ports/lookups.ts";
import type { SystemScope } from "../../core/scope.ts";
import { createCached } from "../../core/structures/cached.ts";
import { findKnown, findMatching, findTraits } from "./store/devices.ts";

export interface Visibility extends Pick<DeviceLookup, "isVisible" | "visible" | "matching"> {
  /** For streams, which ask at every event: tags and fleets that changed on another node may be a second old. */
  isShown(scope: SystemScope, deviceId: string): Promise<boolean>;
  /** The device's tags or fleets have changed. */
  forget(tenantId: string, deviceId: string): void;
}

const CACHE_MS = 1_000;
// Never occurs in an id.
const SEPARATOR = "\u0000";

export const createVisibility = (db: Tx, clock: Clock): Visibility => {
  const load = (key: string) => {
    const [tenantId = "", deviceId = ""] = key.split(SEPARATOR);
    return findTraits(db, { tenantId: tenantId as TenantId }, deviceId); // as: `isShown` made the key
  };
  const traits = createCached<DeviceTraits>({ load, clock, ttlMs: CACHE_MS });
  return {
    isVisible: async (scope, deviceId) => !isLimited(scope) || (await findTraits(db, scope, deviceId)) !== null,
    visible: (scope, deviceIds) => findKnown(db, scope, deviceIds),
    matching: (scope, selector, limit) => findMatching(db, scope, selector, limit),
    isShown: async (scope, deviceId) => {
      if (!isLimited(scope)) return true;
      const found = await traits.get(`${scope.tenantId}${SEPARATOR}${deviceId}`);
      return found !== null && isSelected(deviceLimitsOf(scope), found);
    },
    forget: (tenantId, deviceId) => traits.forget([`${tenantId}${SEPARATOR}${deviceId}`]),
  };
};

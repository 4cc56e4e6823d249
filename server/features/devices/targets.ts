// What bulk operations need of devices: which ones a fleet or selector selects, what they are called, and their tags.
import type { z } from "zod";
import { contract } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import { changeTags, countTargets, findNamedDevices, findTargetsAfter } from "./store/targets.ts";
import type { Visibility } from "./visibility.ts";

/** As the schema of a change of a device has it. */
const MAX_TAGS = 50;

export interface DeviceTargets {
  readonly count: typeof countTargets;
  readonly after: typeof findTargetsAfter;
  readonly named: typeof findNamedDevices;
  /** Tells of each change; call `forget` after the commit. */
  tag(tx: Tx, scope: SystemScope, deviceIds: readonly string[], change: Pick<Parameters<typeof changeTags>[3], "add" | "remove">): Promise<TagOutcomes>;
}
export interface TagOutcomes {
  readonly outcomes: ReadonlyMap<string, "changed" | "unchanged" | "too_many">;
  readonly forget: () => void;
}

export const createTargets = (emit: Emit, forget: Visibility["forget"]): DeviceTargets => ({
  count: countTargets,
  after: findTargetsAfter,
  named: findNamedDevices,
  tag: async (tx, scope, deviceIds, change) => {
    const tagged = await changeTags(tx, scope, deviceIds, { ...change, max: MAX_TAGS });
    const changed = tagged.filter(({ outcome }) => outcome === "changed");
    const events = changed.map(({ outcome: _, tags, ...device }) => {
      const data = { ...device, tags: [...tags], changed: ["tags"] } as z.input<typeof contract.devices.events.changed.schema>; // as: the row's own columns
      return happened(scope, contract.devices.events.changed, device.deviceId, data);
    });
    if (events.length > 0) await emit(tx, events);
    return {
      outcomes: new Map(tagged.map(({ deviceId, outcome }) => [deviceId, outcome])),
      forget: () => {
        for (const { deviceId } of changed) forget(scope.tenantId, deviceId);
      },
    };
  },
});

// The number of each device's apps, beside the devices of a page.
import type { Device } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import type { SqlTx } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";

export type AppCounts = NonNullable<Device["apps"]>;
/** A device without apps may be missing. */
export type CountApps = (sql: SqlTx, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlyMap<string, AppCounts>>;

export interface AppCountsDeps {
  readonly db: SqlTx;
  readonly countApps: CountApps;
}

export type WithApps = <D extends Device>(scope: SystemScope, devices: readonly D[]) => Promise<D[]>;

/** One read for all. A caller who may not read apps learns no number of them. */
export const createWithApps =
  ({ db, countApps }: AppCountsDeps): WithApps =>
  async (scope, devices) => {
    if (devices.length === 0 || !permissionsIn(scope).has("app:read")) return [...devices];
    const counts = await countApps(
      db,
      scope,
      devices.map(({ deviceId }) => deviceId),
    );
    return devices.map((device) => ({ ...device, apps: counts.get(device.deviceId) ?? { total: 0, error: 0 } }));
  };

// Which devices a route is for.
import type { MeshConsumers } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { DeviceLimit, SystemScope } from "../../core/scope.ts";
import { consumersOf, type MeshRole } from "./record.ts";
import type { RouteRow } from "./store.ts";

export interface ConsumersDeps {
  /** Whether the caller sees the device, by its tags and fleets of a second ago. */
  readonly isShown: (scope: SystemScope, deviceId: string) => Promise<boolean>;
  /** All devices that the caller sees. */
  readonly deviceIds: (scope: SystemScope, db: Clients) => Promise<readonly string[]>;
  readonly toLimit: (tenantId: SystemScope["tenantId"], selector: Omit<MeshConsumers, "all">, db?: Clients) => Promise<DeviceLimit>;
}

export const createConsumers = ({ isShown, deviceIds, toLimit }: ConsumersDeps) => {
  /** One who sees the consumers and nobody else. */
  const scopeOf = async ({ tenantId }: SystemScope, row: RouteRow, db?: Clients): Promise<SystemScope> => {
    const { all, ...selector } = consumersOf(row);
    const limits = all ? [] : [await toLimit(tenantId, selector, db)];
    return { tenantId, principal: { kind: "user", userId: "", email: null, role: null, permissions: new Set(), limits } };
  };
  /** The device's part in the route; null: none. */
  const roleOf = async (scope: SystemScope, row: RouteRow, deviceId: string): Promise<MeshRole | null> => {
    if (row.routers.some((router) => router.deviceId === deviceId)) return "router";
    return (await isShown(await scopeOf(scope, row), deviceId)) ? "consumer" : null;
  };
  return {
    ids: async (db: Clients, scope: SystemScope, row: RouteRow): Promise<readonly string[]> => deviceIds(await scopeOf(scope, row, db), db),
    roleOf,
    /** The routes in which the device has a part. */
    rolesOf: async (scope: SystemScope, rows: readonly RouteRow[], deviceId: string): Promise<{ readonly row: RouteRow; readonly role: MeshRole }[]> => {
      const roles = await Promise.all(rows.map((row) => roleOf(scope, row, deviceId)));
      return rows.flatMap((row, index) => {
        const role = roles[index] ?? null;
        return role === null ? [] : [{ row, role }];
      });
    },
  };
};
export type Consumers = ReturnType<typeof createConsumers>;

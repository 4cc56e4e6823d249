// Orders lines of logs from agents, and bounds how much this node asks of a device and of a tenant at the same time.
import { contract } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";
import { newId } from "../../../core/ids.ts";
import { orderOf } from "../../../core/ports/command-outcomes.ts";
import type { Enqueue } from "../../../core/ports/delivery.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { AppRow } from "../record.ts";

export interface LogOrderBounds {
  readonly logsPerDevice: number;
  readonly logsPerTenant: number;
}

export interface LogOrdersDeps {
  readonly db: Db;
  readonly enqueue: Enqueue;
  readonly bounds: LogOrderBounds;
}

export type LoggedApp = Pick<AppRow, "appId" | "deviceId">;

export interface LogOrders {
  /** Returns the function that gives the place back; call it once. */
  takePlace(scope: SystemScope, deviceId: string): () => void;
  tail(scope: SystemScope, app: LoggedApp, asked: { readonly followId: string; readonly tail: number; readonly since: string | null }): Promise<void>;
  follow(scope: SystemScope, app: LoggedApp, asked: { readonly followId: string; readonly seconds: number; readonly since: string | null }): Promise<void>;
}

/** A guess: a place becomes free when somebody closes a log. */
const RETRY_SECONDS = 30;

export const newFollowId = (): string => newId("flw");

export const createLogOrders = ({ db, enqueue, bounds }: LogOrdersDeps): LogOrders => {
  const taken = new Map<string, number>();
  const add = (key: string, count: 1 | -1): void => {
    const now = (taken.get(key) ?? 0) + count;
    if (now === 0) taken.delete(key);
    else taken.set(key, now);
  };
  const order = async (scope: SystemScope, one: ReturnType<typeof orderOf>): Promise<void> => {
    const { notify } = await db.tx((tx) => enqueue(tx, scope, [one]));
    notify();
  };
  const { logs, followLogs } = contract.apps.commands;

  return {
    takePlace: ({ tenantId }, deviceId) => {
      const keys = { device: `${tenantId} ${deviceId}`, tenant: tenantId };
      const limits = { device: bounds.logsPerDevice, tenant: bounds.logsPerTenant };
      for (const per of ["device", "tenant"] as const)
        if ((taken.get(keys[per]) ?? 0) >= limits[per])
          throw new AppError("STREAM_LIMIT_REACHED", { details: { per, limit: limits[per] }, retryAfter: RETRY_SECONDS });
      for (const key of Object.values(keys)) add(key, 1);
      return () => {
        for (const key of Object.values(keys)) add(key, -1);
      };
    },
    tail: (scope, { appId, deviceId }, asked) =>
      order(scope, orderOf(logs, { deviceId, key: asked.followId, orderedBy: "system", payload: { appId, ...asked } })),
    follow: (scope, { appId, deviceId }, asked) =>
      order(scope, orderOf(followLogs, { deviceId, key: `${asked.followId}:${newId("ord")}`, orderedBy: "system", payload: { appId, ...asked } })),
  };
};

// What a device should run, as its agent reads it.
import { createHash } from "node:crypto";
import type { DesiredApp } from "../../../protocol/index.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import { toDesired } from "./record.ts";
import { appsOnDevice, readDesired } from "./store/apps.ts";

export const desiredState = async (
  db: Db,
  scope: SystemScope,
  deviceId: string,
): Promise<{ readonly version: number; readonly hash: string; readonly apps: DesiredApp[] }> => {
  // The version first: if an app changes in between, the agent gets the new app under the old version, and soon the new version.
  const version = await readDesired(db, scope, deviceId);
  const apps = (await appsOnDevice(db, scope, deviceId)).map(toDesired);
  return { version, hash: createHash("sha256").update(JSON.stringify(apps)).digest("hex").slice(0, 32), apps };
};

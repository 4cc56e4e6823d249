// Guide to volumes.
import type { Guide } from "../guide.ts";
import { AT, IDS, LATER } from "../records.ts";

const { appId, deploymentId, deviceId, tenantId } = IDS;
const name = `${appId}.data`;
const volume = {
  name,
  driver: "local",
  mountpoint: `/var/lib/mooring-agent/apps/${appId}/volumes/data`,
  size: 73_400_320,
  labels: {},
  deviceId,
  appId,
  inUse: true,
  orphaned: false,
  files: 412,
  sizeState: "exact",
  status: "present",
  firstSeenAt: AT,
  lastSeenAt: LATER,
};
const orphan = "app_01J9ZQ9V1X3Z5B7D9F0H2K4M6P.data";

export const volumes: Guide<"volumes"> = {
  listOfDevice: {
    description: "Returns what the agent found last. `totalSize` adds up the volumes that have a size.",
    input: { deviceId },
    output: { deviceId, tenantId, deploymentId, volumes: [volume], totalVolumes: 1, totalSize: 73_400_320, discoveredAt: LATER },
  },
  refresh: {
    description: "Lets the agent look again and answers at once. Agents also look once a day.",
    input: { deviceId },
    output: { success: true, message: "The device looks for its volumes. Read them again in a moment.", deviceId },
  },
  report: {
    description: "For agents, at any time: all volumes of the device. One that is missing is gone. Leave `size` out if it was not measured to the end.",
    input: { deviceId, volumes: [{ name, mountpoint: volume.mountpoint, size: 73_400_320, sizeState: "exact", files: 412, appId, inUse: true }] },
    output: { deviceId, totalVolumes: 1, discoveredAt: LATER },
  },
  list: { description: "Lists the volumes of all devices, by name.", input: { orphaned: false }, output: { items: [volume], total: 1 } },
  get: { description: "Returns the volume as the agent found it last.", input: { deviceId, name }, output: volume },
  remove: {
    description: "Orders the removal of a volume that belongs to no app. `confirm` repeats its name, because its data cannot be brought back.",
    input: { deviceId, name: orphan, confirm: orphan },
  },
};

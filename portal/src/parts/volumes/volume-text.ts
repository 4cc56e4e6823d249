// The words of volumes wherever some are shown.
import type { VolumeInfo } from "@mooring/client";
import { counted } from "../../ui/count.ts";

export const text = {
  title: "Volumes",
  name: "Name",
  state: "State",
  device: "Device",
  size: "Size",
  files: "Files",
  seen: "Seen",
  none: "The data of apps appears here once a device has looked for it, which it does every day.",
  noneOfDevice: "The device has found no volume yet. It looks every day, and when somebody asks.",
  total: (count: number) => counted(count, "volume"),
  app: "App",
  ofApp: "its app's data",
  orphaned: "of no app",
  removing: "being removed",
  inUse: "in use",
  driver: "Driver",
  folder: "Folder",
  labels: "Labels",
  first: "First seen",
  sizes: { exact: "", incomplete: "not measured: the time was over", unknown: "not known" } satisfies Readonly<Record<VolumeInfo["sizeState"], string>>,
  look: "Look again",
  looks: "The device looks. The list follows.",
  remove: "Remove the volume",
  removal: "Its data is deleted from the device and cannot be brought back. It belongs to no app that the device has.",
  all: "All",
  onlyOrphaned: "Of no app",
} as const;

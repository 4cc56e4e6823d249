// The sentences of the catalogue.
import type { AppTemplate } from "@mooring/client";
import { capitalized } from "../../../../protocol/kit/words.ts";

type Category = AppTemplate["categories"][number];
const KNOWN: Readonly<Record<Category, 1>> = {
  analytics: 1,
  automation: 1,
  communication: 1,
  databases: 1,
  development: 1,
  documents: 1,
  files: 1,
  home: 1,
  media: 1,
  monitoring: 1,
  network: 1,
  news: 1,
  notes: 1,
  photos: 1,
  productivity: 1,
  security: 1,
  tools: 1,
  websites: 1,
};
export const CATEGORIES = Object.keys(KNOWN) as readonly Category[];

/** Each category is the word itself. */
export const categoryText = (categories: AppTemplate["categories"]): string => categories.map(capitalized).join(", ");

export const text = {
  title: "Catalogue",
  one: "Application",
  filter: "Filter applications",
  none: "The catalogue of this gateway is empty.",
  noMatch: "No application matches these filters.",
  included: "included",
  needs: (plan: string) => `needs ${plan}`,
  notIncluded: (plan: string) => `Your plan does not include it. It needs the plan ${plan}.`,
  plans: "Plans",
  install: "Install",
  installOn: (name: string) => `Install ${name}`,
  device: "Device",
  name: "Name",
  nameHint: "Empty: the name of the application.",
  offline: "The device is offline. The app is installed when it connects.",
  otherArchitecture: (arch: string) => `The device reports ${arch}. The application may not run there.`,
  kinds: { process: "a program that comes with the agent", compose: "containers; the device needs Docker" },
  memory: (megabytes: number) => `${megabytes} MB`,
  disk: (gigabytes: number) => `${gigabytes} GB`,
  requirements: "Requirements",
  ports: "Ports",
  port: (port: AppTemplate["ports"][number]) => `${port.default}/${port.protocol}`,
  volumes: "Volumes",
  images: "Images",
  settings: "Settings",
  default: (value: unknown) => (value === "" ? "empty" : `${value}`),
  required: "required",
  generated: "made if you give none",
  upgradeNotes: "Before an update",
  nothing: "None.",
  website: "Website",
  source: "Source code",
  running: "Your apps of it",
} as const;

// The sentences of the catalogue.
import type { AppTemplate } from "@mooring/client";
import { capitalized } from "../../../../protocol/kit/words.ts";
import { counted, numbers } from "../../ui/count.ts";

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
  all: "All",
  categories: "Categories",
  order: "Order",
  sorts: { installed: "Most installed", name: "Name" },
  fitsMine: "Fits mine",
  total: (all: number, fitting: number | null) =>
    fitting === null ? counted(all, "app") : `${counted(all, "app")}, ${numbers.format(fitting)} fit your devices`,
  none: "The catalogue of this gateway is empty.",
  noMatch: "No application matches these filters.",
  clear: "Clear filters",
  needed: (memory: string, disk: string) => `${memory} memory, ${disk} disk`,
  needs: (plan: string) => `needs ${plan}`,
  notIncluded: (plan: string) => `Your plan does not include it. It needs the plan ${plan}.`,
  plans: "Plans",
  noDevices: "You have no device yet that could run it.",
  pair: "Pair a device",
  noneFits: "None of your devices can run it, by what they report.",
  install: "Install",
  installOn: (name: string) => `Install ${name}`,
  installed: "Installed",
  installedAt: (apps: AppTemplate["installed"]) => apps.find(({ deviceName }) => deviceName !== null)?.deviceName ?? "installed",
  /** Such as `, 2 more, update`, after a device. */
  installedMore: (apps: AppTemplate["installed"], count: number) => {
    const more = count > 1 ? `, ${numbers.format(count - 1)} more` : "";
    return `${more}${apps.some(({ status }) => status === "error") ? ", in error" : apps.some(({ updateAvailable }) => updateAvailable) ? ", update" : ""}`;
  },
  allOf: (count: number) => `All ${numbers.format(count)}`,
  nowhere: "You have not installed it yet.",
  update: "update",
  device: "Device",
  name: "Name",
  nameHint: "Empty: the name of the application.",
  offline: "offline; it is installed when the device connects",
  kinds: { process: "a program that comes with the agent", compose: "containers; the device needs Docker" },
  requirements: "What it needs",
  sentence: (words: string) => `It ${words}.`,
  version: (version: string) => `version ${version}`,
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
  source: "Source code",
} as const;

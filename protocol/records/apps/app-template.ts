// A template: an application of the catalogue, with what a person needs to know before they install it and the form of its configuration.
import { z } from "zod";
import { Plan } from "../../groups/access/tenants.ts";
import { APP_ARCHITECTURES, APP_KINDS } from "../../kit/app-fit.ts";
import { AppId, DeviceId } from "../../kit/ids.ts";
import { AppStatus } from "./app.ts";
import { AppHue, AppIcon } from "./app-picture.ts";
import { ConfigSchema } from "./config-schema.ts";

export const AppCategory = z.enum([
  "analytics",
  "automation",
  "communication",
  "databases",
  "development",
  "documents",
  "files",
  "home",
  "media",
  "monitoring",
  "network",
  "news",
  "notes",
  "photos",
  "productivity",
  "security",
  "tools",
  "websites",
]);
export type AppCategory = z.infer<typeof AppCategory>;

/** How many of the devices that the caller sees can run an application. */
export const AppFits = z.object({
  devices: z.int().describe("Those that can run it. What a device has not reported counts as enough."),
  total: z.int().describe("All that the caller sees."),
  only: z.object({ deviceId: DeviceId, name: z.string().nullable() }).nullable().describe("The device, if it is the only one that can run it."),
  lacking: z
    .object({
      architecture: z.int().describe("Of devices with another architecture."),
      runtime: z.int().describe("Of devices whose agent does not run applications of this kind."),
      memory: z.int().describe("Of devices with less memory than it needs."),
      disk: z.int().describe("Of devices whose disk is smaller than it needs."),
    })
    .describe("The numbers of the other devices, by what they lack. A device may lack several things."),
});
export type AppFits = z.infer<typeof AppFits>;

/** The most apps of one application that the catalogue names. */
export const MAX_INSTALLED = 5;
export const InstalledApp = z.object({
  appId: AppId,
  name: z.string(),
  deviceId: DeviceId,
  deviceName: z.string().nullable().describe("`null`: it has none, or the caller may not read devices."),
  status: AppStatus,
  updateAvailable: z.boolean().describe("Whether it has another version than the catalogue."),
});
export type InstalledApp = z.infer<typeof InstalledApp>;

export const AppTemplate = z.object({
  id: z.string(),
  name: z.string(),
  tagline: z.string(),
  description: z.string(),
  version: z.string().describe("Of the application."),
  kind: z.enum(APP_KINDS).describe("`process`: a program that comes with the agent. `compose`: containers, so the device needs Docker."),
  categories: z.array(AppCategory),
  icon: AppIcon,
  hue: AppHue,
  minPlan: Plan.describe("The smallest plan that may install it."),
  available: z.boolean().describe("Whether the tenant's plan suffices."),
  requiredPlan: Plan.optional().describe("The plan that the tenant needs; absent when `available`."),
  fits: AppFits.nullable().describe("`null`: the caller may not read devices."),
  installed: z.array(InstalledApp).describe(`The tenant's first ${MAX_INSTALLED} apps of it that the caller sees.`),
  installedCount: z.int().describe("All of them."),
  developer: z.string(),
  license: z.string().describe("An SPDX expression, or the license's name if SPDX has none."),
  website: z.url().nullable().describe("`null` for a program that comes with the agent."),
  sourceUrl: z.url().nullable().describe("Of its source code."),
  architectures: z.array(z.enum(APP_ARCHITECTURES)),
  requirements: z.object({ memoryMB: z.int(), diskGB: z.number() }),
  images: z.array(z.string()).describe("Container images, each pinned to a version."),
  ports: z.array(
    z.object({
      name: z.string(),
      protocol: z.enum(["tcp", "udp"]),
      config: z.string().describe("The property of the configuration that holds the port's number on the device."),
      default: z.int(),
    }),
  ),
  volumes: z.array(z.string()),
  configSchema: ConfigSchema.describe("JSON Schema of the configuration. `contentMediaType` marks text of several lines."),
  secrets: z.array(
    z.object({
      name: z.string(),
      title: z.string(),
      description: z.string().nullable(),
      required: z.boolean(),
      generated: z.boolean().describe("A new app gets a random value if nobody gives one."),
    }),
  ),
  healthPath: z.string().nullable().describe("The app is healthy when this path answers. `null`: it is healthy while it runs."),
  upgradeNotes: z.string().nullable().describe("What to know before you update, in Markdown."),
});
export type AppTemplate = z.infer<typeof AppTemplate>;

// A template: an application of the catalogue, with what a person needs to know before they install it and the form of its configuration.
import { z } from "zod";
import { Plan } from "../../groups/access/tenants.ts";
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

/** Names of Lucide's drawings, which the console has. */
export const APP_ICONS = [
  ...["activity", "archive", "bell", "book-open", "bookmark", "box", "calendar", "camera", "chart-column", "chart-line", "clapperboard", "clipboard"],
  ...["cloud", "code", "database", "eye", "file-text", "folder", "gamepad-2", "git-branch", "globe", "headphones", "house", "image", "key-round"],
  ...["library", "list-checks", "mail", "message-circle", "music", "newspaper", "package", "refresh-cw", "rss", "search", "shield", "sticky-note"],
  ...["utensils", "wallet", "workflow", "wrench"],
] as const;
export const AppIcon = z.enum(APP_ICONS).describe("A name of the icon set Lucide.");
export const APP_HUES = ["amber", "blue", "green", "red", "teal", "violet"] as const;
export const AppHue = z.enum(APP_HUES).describe("The colour of its tile.");

export const AppTemplate = z.object({
  id: z.string(),
  name: z.string(),
  tagline: z.string(),
  description: z.string(),
  version: z.string().describe("Of the application."),
  kind: z.enum(["process", "compose"]).describe("`process`: a program that comes with the agent. `compose`: containers, so the device needs Docker."),
  categories: z.array(AppCategory),
  icon: AppIcon,
  hue: AppHue,
  minPlan: Plan.describe("The smallest plan that may install it."),
  available: z.boolean().describe("Whether the tenant's plan suffices."),
  requiredPlan: Plan.optional().describe("The plan that the tenant needs; absent when `available`."),
  developer: z.string(),
  license: z.string().describe("An SPDX expression, or the license's name if SPDX has none."),
  website: z.url().nullable().describe("`null` for a program that comes with the agent."),
  sourceUrl: z.url().nullable().describe("Of its source code."),
  architectures: z.array(z.enum(["amd64", "arm64", "arm"])),
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

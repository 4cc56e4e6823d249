// Apps: the catalogue of applications that a device can run.
import { z } from "zod";
import { group, query } from "../kit/operation.ts";
import { cursorQuery, paged } from "../kit/page.ts";
import { AppCategory, AppTemplate } from "../records/app-template.ts";
import { ConfigProperty, ConfigSchema } from "../records/config-schema.ts";

const read = { auth: ["user", "apiKey"], permission: "app:read" } as const;

export const apps = group({
  tag: "Apps",
  records: { AppTemplate, ConfigSchema, ConfigProperty },
  operations: {
    templates: query({
      ...read,
      summary: "List the applications of the catalogue",
      rest: ["GET /app-templates"],
      list: "cursor",
      input: cursorQuery({
        category: AppCategory.optional().describe("Only applications of this category."),
        q: z.string().min(1).max(100).optional().describe("Only applications whose name, tagline or description contains this text."),
        available: z.boolean().optional().describe("Only applications that the tenant's plan allows, or only the others."),
      }),
      output: paged(AppTemplate),
    }),
    template: query({
      ...read,
      summary: "Get an application of the catalogue",
      rest: ["GET /app-templates/{templateId}"],
      input: z.strictObject({ templateId: z.string().min(1).max(128).describe("Id of the template, such as `vaultwarden`.") }),
      output: AppTemplate,
      errors: ["APP_TEMPLATE_NOT_FOUND"],
    }),
  },
});

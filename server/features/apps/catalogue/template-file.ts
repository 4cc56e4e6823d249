// The form of a template's app.json.
import { z } from "zod";
import { AppSpec, AppTemplate, ConfigSchema, VariableName } from "../../../../protocol/index.ts";

const Text = z.string().trim().min(1);
const [ProcessSpec, ComposeSpec] = AppSpec.options;
/** The spec without the text of the Compose file, which has a file of its own. */
const Spec = z.discriminatedUnion("kind", [ProcessSpec, ComposeSpec.omit({ compose: true })]);
export type SpecInFile = z.output<typeof Spec>;

const { shape } = AppTemplate;
/** `name:version` or `name:version@digest`: a tag that moves is no version. */
const Image = z
  .string()
  .regex(/^[a-z0-9]+(?:[._/-]+[a-z0-9]+)*:[A-Za-z0-9_][\w.-]{0,127}(?:@sha256:[0-9a-f]{64})?$/, "must be an image with a tag, and perhaps a digest")
  .refine((image) => /:[^@]*\d/.test(image), "must have a tag that names a version");

export const TemplateFile = z.strictObject({
  name: Text.max(60),
  tagline: Text.max(80),
  description: Text.max(500),
  version: Text.max(64),
  categories: shape.categories.min(1).max(4),
  icon: shape.icon.default("box"),
  hue: shape.hue.default("blue"),
  minPlan: shape.minPlan.default("free"),
  developer: Text.max(100),
  license: Text.max(60),
  website: z.url({ protocol: /^https$/ }).nullable(),
  sourceUrl: z.url({ protocol: /^https$/ }).nullable(),
  architectures: shape.architectures.min(1),
  requirements: z.strictObject({ memoryMB: z.int().min(1).max(65_536), diskGB: z.number().min(0).max(10_000) }),
  images: z.array(Image).max(16).default([]),
  configSchema: ConfigSchema.superRefine(({ properties, required }, context) => {
    const refuse = (name: string, message: string): void => context.addIssue({ code: "custom", path: ["properties", name], message });
    for (const [name, property] of Object.entries(properties))
      if ((property.default === undefined) !== required.includes(name)) refuse(name, "must have a default or be required, and not both");
    for (const name of required) if (!Object.hasOwn(properties, name)) refuse(name, "is required but is no property");
  }),
  secrets: z
    .array(
      z.strictObject({
        name: VariableName,
        title: Text.max(60),
        description: Text.max(300).nullable().default(null),
        required: z.boolean().default(true),
        generated: z.boolean().default(false),
      }),
    )
    .max(32)
    .default([]),
  upgradeNotes: Text.max(1_000).nullable().default(null),
  spec: Spec,
});
export type TemplateFile = z.output<typeof TemplateFile>;

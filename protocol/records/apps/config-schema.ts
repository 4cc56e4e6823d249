// The schema of an application's configuration: the part of JSON Schema from which a form can be made, a flat object of texts, numbers and switches.
import { z } from "zod";

const named = { title: z.string().trim().min(1).max(60), description: z.string().trim().min(1).max(300).optional() };
const amounts = (number: z.ZodNumber) => ({ ...named, default: number.optional(), minimum: number.optional(), maximum: number.optional() });

export const ConfigProperty = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("string"),
    ...named,
    default: z.string().optional(),
    enum: z.array(z.string()).min(2).optional(),
    format: z.enum(["uri", "email", "hostname", "ipv4"]).optional(),
    minLength: z.int().min(0).optional(),
    maxLength: z.int().min(1).max(32_768).optional(),
    pattern: z.string().max(500).optional(),
    contentMediaType: z.literal("text/plain").optional(),
  }),
  z.strictObject({ type: z.literal("integer"), ...amounts(z.int()) }),
  z.strictObject({ type: z.literal("number"), ...amounts(z.number()) }),
  z.strictObject({ type: z.literal("boolean"), ...named, default: z.boolean().optional() }),
]);
export type ConfigProperty = z.output<typeof ConfigProperty>;

export const ConfigSchema = z.strictObject({
  $schema: z.literal("https://json-schema.org/draft/2020-12/schema"),
  type: z.literal("object"),
  properties: z.record(z.string().regex(/^[a-z][A-Za-z0-9]{0,63}$/), ConfigProperty),
  required: z.array(z.string()).default([]).describe("Every property without a default."),
  additionalProperties: z.literal(false),
});
export type ConfigSchema = z.output<typeof ConfigSchema>;

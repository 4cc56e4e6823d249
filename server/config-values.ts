// How values of the environment are read: each a schema from text, with a message for what it refuses.
import { z } from "zod";

export const integer = (fallback: number, min: number, max: number) => z.coerce.number().int().min(min).max(max).default(fallback);
export const flag = (fallback: boolean) =>
  z
    .enum(["true", "false", "1", "0"])
    .transform((text) => text === "true" || text === "1")
    .default(fallback);
export const words = (text: string): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
export const list = z.string().transform(words).default([]);
/** Overrides a rate limit: requests a minute, or `off`. */
export const rate = z.union([z.literal("off").transform(() => null), z.coerce.number().int().min(1).max(10_000_000)]).optional();
const json = z.string().transform((text, context) => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    context.addIssue({ code: "custom", message: "is not JSON" });
    return z.NEVER;
  }
});
export const planLimits = json.pipe(z.record(z.string(), z.record(z.string(), z.number().nullable())));
/** Ids of Stripe's prices by plan and interval. */
export const stripePrices = json.pipe(
  z.partialRecord(z.enum(["starter", "pro", "team", "business"]), z.partialRecord(z.enum(["monthly", "annual"]), z.string().min(1))),
);
export const cidrs = list.pipe(z.array(z.union([z.cidrv4(), z.cidrv6()])));

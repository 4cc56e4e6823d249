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
const MAX_PORT = 65_535;
const MAX_PORTS = 1_000;
const portsIn = (text: string): readonly number[] | null => {
  const [, first = "", last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (first === "" || from < 1 || to > MAX_PORT || to < from || to - from >= MAX_PORTS) return null;
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
};
/** Ports and ranges of them, as `20000-20099,5432`. */
export const portRanges = z
  .string()
  .transform((text, context): number[] => {
    const ranges = words(text).map(portsIn);
    const ports = [...new Set(ranges.flatMap((range) => range ?? []))].sort((one, other) => one - other);
    if (!ranges.includes(null) && ports.length <= MAX_PORTS) return ports;
    context.addIssue({ code: "custom", message: `must be ports and ranges such as 20000-20099, at most ${MAX_PORTS} ports` });
    return z.NEVER;
  })
  .default([]);
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

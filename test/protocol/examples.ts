// The documents of the agent protocol without apps, and their examples, extracted from the code blocks for the tests that keep them true.
import { readFileSync } from "node:fs";
import { z } from "zod";

/** By name: level 1 with pairing, levels 2 and 3, and the tables. */
export const documents = new Map(
  ["README.md", "pairing.md", "levels.md", "reference.md"].map(
    (name) => [name, readFileSync(new URL(`../../protocol/${name}`, import.meta.url), "utf8")] as const,
  ),
);
/** All of them. */
export const readme = [...documents.values()].join("\n");
const blocks = [...readme.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text]): unknown => JSON.parse(text ?? ""));
const Frame = z.looseObject({ op: z.string(), id: z.string(), data: z.record(z.string(), z.unknown()) });

const withField = (...names: readonly string[]): unknown => {
  const found = blocks.filter((block) => typeof block === "object" && block !== null && names.every((name) => name in block));
  if (found.length !== 1) throw new Error(`${found.length} examples have ${names.join(", ")}`);
  return found[0];
};

export const examples = {
  frames: blocks.flatMap((block) => Frame.safeParse(block).data ?? []),
  initiate: withField("device_fingerprint", "device_name"),
  collect: withField("pollToken", "device_fingerprint"),
  code: withField("expires_at"),
  autoActivate: withField("enrollment_token"),
  activate: withField("activation_token"),
  identity: withField("shared_secret"),
  refusal: withField("error", "retryable"),
  poll: blocks.find((block) => z.object({ data: z.array(z.unknown()) }).safeParse(block).success),
  me: blocks.find((block) => z.object({ data: z.object({ agentId: z.string() }) }).safeParse(block).success),
} as const;

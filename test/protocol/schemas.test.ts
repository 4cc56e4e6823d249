// The published JSON Schemas equal the contract's, accept what is sent, and leave room for future fields.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fieldsText, schemaFiles } from "../conventions/schemas.ts";
import { FIELDS, SCHEMAS } from "../conventions/write-schemas.ts";
import { examples } from "./examples.ts";

type JsonSchema = Parameters<typeof z.fromJSONSchema>[0];
const read = (name: string) => JSON.parse(readFileSync(new URL(name, SCHEMAS), "utf8"));
const checkerOf = (schema: JsonSchema): z.ZodType => z.fromJSONSchema(schema);
const frameChecker = (folder: "from-gateway" | "from-agent", op: string): z.ZodType => checkerOf(read(`${folder}/${op}.json`));

test("the schema files equal the contract's (npm run docs:schemas writes them)", () => {
  const there = readdirSync(fileURLToPath(SCHEMAS), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".json"));
  expect(there.sort()).toEqual([...schemaFiles().keys()].sort());
  for (const [name, text] of schemaFiles()) expect(readFileSync(new URL(name, SCHEMAS), "utf8"), name).toBe(text);
  expect(readFileSync(FIELDS, "utf8")).toBe(fieldsText());
});

describe("examples", () => {
  test.each(examples.frames.map((frame) => [`${frame.op} ${JSON.stringify(frame.data).slice(0, 50)}`, frame] as const))(
    "the example %s passes its schema",
    (_, frame) => {
      const folders = (["from-gateway", "from-agent"] as const).filter((folder) => schemaFiles().has(`${folder}/${frame.op}.json`));
      expect(folders.some((folder) => frameChecker(folder, frame.op).safeParse(frame).success)).toBe(true);
    },
  );
  test.each([
    ["rest/commands.poll.json", "answer", examples.poll],
    ["rest/agent.me.json", "answer", examples.me],
    ["rest/pairing.initiate.json", "body", examples.initiate],
    ["rest/pairing.collect.json", "body", examples.collect],
    ["rest/pairing.autoActivate.json", "body", examples.autoActivate],
    ["rest/pairing.activate.json", "body", examples.activate],
    ["rest/pairing.activate.json", "answer", { success: true, data: examples.identity }],
    ["rest/pairing.initiate.json", "answer", { success: true, data: examples.code }],
  ] as const)("in %s the %s accepts its example and refuses an empty object", (name, part, example) => {
    const { $defs } = read(name);
    expect(checkerOf($defs[part]).safeParse(example).error).toBeUndefined();
    expect(checkerOf($defs[part]).safeParse({}).success).toBe(false);
  });
});

describe("future frames", () => {
  const base = { id: "s1", newField: 1 };
  test.each<readonly [string, Record<string, unknown>]>([
    ["welcome", { nonce: "n", heartbeat: { intervalSec: 1.5 }, limits: {}, newGroup: { x: 1 } }],
    ["ready", { reconcile: [{ commandId: "job 1", action: "escalate" }] }],
    ["command", { command: { commandId: "job 1", type: "x" } }],
    ["command", { command: { commandId: "job 1", type: "x" }, delivery: { executionTimeoutSec: 0.5 } }],
    ["ack_ok", { commandId: "job 1", status: "quarantined", result: "archived", code: "X" }],
    ["drain", { reconnectAfterMs: 1.5 }],
    ["error", { code: "NEW_CODE" }],
  ])("an agent accepts %s with unknown fields and values: %o", (op, data) =>
    expect(frameChecker("from-gateway", op).safeParse({ op, ...base, data }).error).toBeUndefined(),
  );
  test.each<readonly [string, Record<string, unknown>]>([
    ["welcome", {}],
    ["ready", { reconcile: [{ commandId: "job 1" }] }],
    ["command", { command: { commandId: "job 1" } }],
    ["ack_ok", { result: "applied" }],
  ])("an agent refuses %s without a field that it needs: %o", (op, data) =>
    expect(frameChecker("from-gateway", op).safeParse({ op, ...base, data }).success).toBe(false),
  );
});

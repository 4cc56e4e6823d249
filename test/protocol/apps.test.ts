// Keeps protocol/apps.md true: its examples pass the contract's schemas, it names every field and word, and each of its rules has a name of its own.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { AppStage, contract, DesiredApp, LogChunkHead, LogLine, ReportedApp } from "../../protocol/index.ts";
import { AgentEventSeverity } from "../../protocol/records/devices/agent-event.ts";

const text = readFileSync(new URL("../../protocol/apps.md", import.meta.url), "utf8");
const examples = [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(([, block]): unknown => JSON.parse(block ?? ""));
const { desiredState, reportState } = contract.agent.operations;
const answerOf = (data: z.ZodType) => z.object({ success: z.literal(true), data, meta: z.object({ timestamp: z.string(), requestId: z.string() }) });

test.each([
  ["an app as it should be", DesiredApp],
  ["the desired state", answerOf(desiredState.output)],
  ["the output of a command", contract.apps.commands.deploy.output],
  ["a report", z.object({ ...reportState.input.shape, apps: z.array(ReportedApp) }).strict()],
  ["the answer to a report", answerOf(reportState.output)],
] as const)("the example of %s passes its schema", (_, schema) => {
  const fitting = examples.filter((example) => (schema as z.ZodType).safeParse(example).success);
  expect(fitting).toHaveLength(1);
});
test("no example is without a schema", () => expect(examples).toHaveLength(5));

test("the example of a chunk of a log passes the schemas of its lines", () => {
  const [head, line] = (/```\n(\{"followId[\s\S]*?)```/.exec(text)?.[1] ?? "")
    .trim()
    .split("\n")
    .map((each) => JSON.parse(each) as unknown);
  expect([LogChunkHead.safeParse(head).error, LogLine.safeParse(line).error]).toEqual([undefined, undefined]);
});

describe("it names", () => {
  const calls = Object.values(contract.agent.operations).flatMap(({ rest }) => rest.map((route) => route.replace(" /", " /v1/")));
  const ELSEWHERE: ReadonlySet<string> = new Set(["GET /v1/agent/me", "GET /v1/agent/config", "GET /v1/agent/updates/packages/{file}"]);
  const fields = (schema: z.ZodObject): readonly string[] => Object.keys(schema.shape);
  test.each([
    ...fields(DesiredApp),
    ...fields(ReportedApp),
    ...fields(LogChunkHead),
    ...fields(reportState.output as z.ZodObject),
    ...AppStage.options,
    ...ReportedApp.shape.state.options,
    ...AgentEventSeverity.options,
    ...Object.values(contract.apps.commands).map(({ type }) => type),
    ...calls.filter((call) => !ELSEWHERE.has(call)),
  ])("%s", (name) => expect(text).toMatch(new RegExp(`[\`."\\]]${name.replace(/[.{}]/g, "\\$&")}[\`":]`)));
});

test("each rule has one name, under its section", () => {
  const anchors = [...text.matchAll(/\*\*(A(\d+)\.\d+)\*\*/g)];
  const section = (at: number): string => [...text.slice(0, at).matchAll(/^## (\d+)\./gm)].at(-1)?.[1] ?? "";
  expect(anchors.length).toBeGreaterThan(20);
  expect(new Set(anchors.map(([, name]) => name)).size).toBe(anchors.length);
  expect(anchors.filter(({ 2: number, index }) => number !== section(index)).map(([, name]) => name)).toEqual([]);
});

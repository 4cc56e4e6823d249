// Keeps protocol/README.md true: each example frame passes the schema, each frame, close code and ack word is told.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ACK_STATUSES, AgentFrame, CLOSE, HEADERS, PolledCommand, ServerFrame, SUBPROTOCOL, toAckStatus } from "../../protocol/index.ts";

const readme = readFileSync(new URL("../../protocol/README.md", import.meta.url), "utf8");
const blocks = [...readme.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text]) => text ?? "");
const starts = (text: string): boolean => text.startsWith('{"op"');
/** A block may hold several frames, each beginning on its own line. */
const frames = blocks
  .flatMap((text) => text.split(/\n(?=\{"op")/))
  .filter(starts)
  .map((text): unknown => JSON.parse(text));
const [fromGateway, fromAgent] = [readme.slice(0, readme.indexOf("### From the agent")), readme.slice(readme.indexOf("### From the agent"))];

test.each(frames.map((frame) => [JSON.stringify(frame).slice(0, 60), frame] as const))("example %s passes its schema", (_, frame) => {
  const accepted = [ServerFrame, AgentFrame].map((schema) => schema.safeParse(frame)).filter(({ success }) => success);
  expect(accepted).not.toHaveLength(0);
});

describe("nothing is left out", () => {
  const ops = (schema: typeof ServerFrame | typeof AgentFrame): readonly string[] => schema.options.map(({ shape }) => shape.op.value);
  test.each(ops(ServerFrame))("frame %s from the gateway has an example", (op) =>
    expect(fromGateway).toMatch(new RegExp(`\\*\\*${op}\\*\\*[\\s\\S]*\\{"op":"${op}"`)),
  );
  test.each(ops(AgentFrame).filter((op) => op !== "error"))("frame %s from the agent has an example", (op) =>
    expect(fromAgent).toMatch(new RegExp(`\\*\\*${op}\\*\\*[\\s\\S]*\\{"op":"${op}"`)),
  );
  test.each(Object.values(CLOSE))("close code $code is in the table", ({ code, token }) => {
    const row = readme.split("\n").find((line) => new RegExp(`^\\|[^|]*\\b${code}\\b`).test(line));
    expect(row).toContain(`\`${token}\``);
  });
  test.each(ACK_STATUSES)("ack word %s is in the table, and its synonyms are read as it", (word) => {
    const row = readme.split("\n").find((line) => line.startsWith(`| \`${word}\` |`));
    const synonyms = (row?.split("|")[2] ?? "")
      .split(",")
      .map((text) => text.trim())
      .filter((text) => text !== "");
    expect(row).toBeDefined();
    for (const synonym of synonyms) expect(toAckStatus(synonym.toUpperCase())).toBe(word);
  });
  test.each([...Object.values(HEADERS), SUBPROTOCOL])("%s is named", (name) => expect(readme).toContain(`\`${name}\``));
});

test("the example of a poll's answer passes its schema", () => {
  const answer = blocks.find((text) => text.includes('"data":[{"commandId"'));
  expect(z.object({ data: z.array(PolledCommand).length(1) }).safeParse(JSON.parse(answer ?? "{}")).error).toBeUndefined();
});

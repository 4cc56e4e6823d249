// The agent socket conforms to WebSocket in 247 cases of the Autobahn|Testsuite; a page of the docs lists how each ended.
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Case, text, together } from "./autobahn/case.ts";
import { closeCases } from "./autobahn/cases-close.ts";
import { autoFragmentCase, framingCases } from "./autobahn/cases-framing.ts";
import { utf8Cases } from "./autobahn/cases-utf8.ts";
import { startEcho } from "./autobahn/echo.ts";
import { closeFrame, frame, OP } from "./autobahn/frames.ts";
import { type Judgement, judge } from "./autobahn/judge.ts";
import { type Judged, page, summary } from "./autobahn/report.ts";

const PAGE = new URL("../../docs/websocket-conformance.md", import.meta.url);
const CASES: readonly Case[] = [...framingCases, ...utf8Cases, ...closeCases, autoFragmentCase];
const AT_ONCE = 8;

let judged: readonly (Judged & Judgement)[] = [];
let echo: Awaited<ReturnType<typeof startEcho>>;
beforeAll(async () => {
  echo = await startEcho();
  const found = new Map<string, Judgement>();
  const queue = CASES.values();
  const worker = async (): Promise<void> => {
    for (const each of queue) found.set(each.id, await judge(each, echo.at));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  judged = CASES.map(({ id, title }) => ({ id, title, ...(found.get(id) ?? { verdict: "failed" as const, seen: "nothing" }) }));
  process.stdout.write(`\n${summary(judged)}\n`);
}, 60_000);
afterAll(() => echo.close());

test("all 247 cases exist, each once", () => {
  expect(new Set(CASES.map(({ id }) => id)).size).toBe(247);
  expect(CASES).toHaveLength(247);
});

test.each(CASES.map(({ id, title }) => [id, title]))("%s %s", (id) => {
  const found = judged.find((each) => each.id === id);
  expect(found?.verdict === "failed" ? found.seen : null).toBeNull();
});

test("docs/websocket-conformance.md lists the results of this run", () => {
  if (process.env["WRITE_CONFORMANCE"] === "1") writeFileSync(PAGE, page(judged));
  expect(readFileSync(PAGE, "utf8")).toBe(page(judged));
});

// The echo is right, so these cases expect the wrong result: an answer to a bad frame, a close after a good one, another close code.
const CONTROLS: readonly Partial<Case>[] = [
  { writes: together(frame(OP.text, "hello", { rsv: 1 })), strict: [text("hello")], ending: { by: "client" } },
  { writes: together(frame(OP.text, "hello")), strict: [text("hello")], ending: { by: "server", codes: [1002] } },
  { writes: together(closeFrame(1000)), ending: { by: "case", codes: [1001] } },
  { writes: together(frame(OP.text, "hello"), closeFrame(1000)), ending: { by: "case", codes: [1000] } },
];
test.each(CONTROLS)("control %# fails as it must", async (control) => {
  expect(await judge({ id: "control", title: "", writes: [], strict: [], ending: { by: "anyone" }, ...control }, echo.at)).toMatchObject({ verdict: "failed" });
});

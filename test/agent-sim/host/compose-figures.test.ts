// What the compose host reads from `docker stats`.
import { expect, test } from "vitest";
import { figuresIn } from "../../../agent-sim/host/compose/figures.ts";

const row = (name: string, cpu: string, memory: string): string => JSON.stringify({ Name: name, CPUPerc: cpu, MemUsage: `${memory} / 23.54GiB` });

test("the figures of a project are the sums of its containers, and of no others", () => {
  const output = [row("app_1-web-1", "1.65%", "528KiB"), row("app_1-db-1", "100.00%", "1.5GiB"), row("app_12-web-1", "9%", "9MiB"), row("other", "9%", "9B")];
  expect(figuresIn(output.join("\n"), "app_1")).toEqual({ cpuPercent: 101.7, memoryBytes: 528 * 1_024 + 1.5 * 1_024 ** 3 });
});
test.each([
  ["nothing", ""],
  ["a container that has just ended", JSON.stringify({ Name: "app_1-web-1", CPUPerc: "--", MemUsage: "-- / --" })],
  ["another form", '{"name":"app_1-web-1"}\nno JSON\n[]\nnull'],
  ["a unit that is none", row("app_1-web-1", "1", "5 apples")],
])("%s has no figures", (_what, output) => {
  expect(figuresIn(output, "app_1")).toEqual({ cpuPercent: null, memoryBytes: null });
});

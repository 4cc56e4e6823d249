// What operators load into Prometheus and Grafana names only metrics that a node serves, and each alert has a page that says what to do.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { dashboardFiles, expressions } from "./dashboards.ts";

const FOLDER = new URL("../../../docs/observability/", import.meta.url);
/** `npm run docs:observability` writes what is generated. */
const WRITES = process.env["WRITE_OBSERVABILITY"] !== undefined;
const read = (name: string): string => readFileSync(new URL(name, FOLDER), "utf8");
const Rules = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          for: z.string(),
          labels: z.object({ severity: z.enum(["critical", "warning"]) }),
          annotations: z.object({ summary: z.string(), runbook: z.string() }),
        }),
      ),
    }),
  ),
});
const rules = () => Rules.parse(parse(read("rules.yml"))).groups.flatMap((group) => group.rules);

interface Metric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
}
let world: World;
let metrics: readonly Metric[];
/** The names under which Prometheus stores the samples. */
let series: ReadonlySet<string>;

beforeAll(async () => {
  world = await startWorld();
  const answer = await fetch(`http://127.0.0.1:${world.app.internalPort()}/metrics`, { headers: { authorization: `Bearer ${world.app.internalToken}` } });
  const page = await answer.text();
  const types = new Map([...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]));
  metrics = [...page.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name = "", help = ""]) => ({ name, help, type: types.get(name) ?? "" }));
  series = new Set(metrics.flatMap(({ name, type }) => (type === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => `${name}${end}`) : [name])));
});
afterAll(() => world.close());

const namesIn = (text: string): readonly string[] => text.match(/\b(?:mooring|process|nodejs)_\w+/g) ?? [];
const unknown = (texts: readonly string[]): readonly string[] => texts.flatMap(namesIn).filter((name) => !series.has(name));

test("metrics.md lists every metric with its type and meaning", () => {
  const rows = metrics
    .filter(({ name }) => name.startsWith("mooring_"))
    .map(({ name, type, help }) => `| \`${name}\` | ${type} | ${help.replaceAll("|", "\\|")} |`);
  const text = `# Metrics\n\nWritten by \`npm run docs:observability\` from what a node serves. Names end with their unit; \`_total\` only grows.\n\n| Metric | Type | Meaning |\n|---|---|---|\n${rows.sort().join("\n")}\n`;
  if (WRITES) writeFileSync(new URL("metrics.md", FOLDER), text);
  expect(rows.length).toBeGreaterThan(40);
  expect(read("metrics.md")).toBe(text);
});

test("the dashboards are those of the list, and ask for metrics that exist", () => {
  for (const [name, text] of dashboardFiles()) {
    if (WRITES) writeFileSync(new URL(name, FOLDER), text);
    expect(JSON.parse(read(name))).toEqual(JSON.parse(text));
  }
  expect(readdirSync(FOLDER).filter((name) => name.startsWith("dashboard-"))).toEqual([...dashboardFiles().keys()].sort());
  expect(unknown(expressions())).toEqual([]);
});

test("the alerts watch metrics that exist", () => {
  expect(unknown(rules().map(({ expr }) => expr))).toEqual([]);
  expect(rules().filter(({ expr }) => namesIn(expr).length === 0 && !expr.startsWith("up{"))).toEqual([]);
});

test("each alert has a section of the runbook, and each section an alert; metrics and jobs that it names exist", () => {
  const runbook = read("runbook.md");
  const sections = [...runbook.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
  expect(sections).toEqual(rules().map(({ alert }) => alert));
  expect(rules().filter(({ alert, annotations }) => annotations.runbook !== `runbook.md#${alert.toLowerCase()}`)).toEqual([]);
  for (const part of runbook.split(/^## /m).slice(1)) expect(part).toMatch(/\*\*Means\*\*: .*\n\*\*Look\*\*: .*\n\*\*Do\*\*: /);
  const known = new Set([...series, ...metrics.map(({ name }) => name)]);
  expect(namesIn(runbook).filter((name) => !known.has(name))).toEqual([]);
  const jobs = new Set(world.app.jobs.map(({ name }) => name));
  const named = [...runbook.matchAll(/(?:the job |for )`([a-z]+\.[a-z]+)`/gi)].map(([, name = ""]) => name);
  expect([named.length > 0, named.filter((name) => !jobs.has(name))]).toEqual([true, []]);
});

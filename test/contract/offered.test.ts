// Every operation that was designed is offered, or named here with the reason why it is not.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { contract, type Operation } from "../../protocol/index.ts";

/** Served beside the contract, or left out. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "GET /agent/socket": "the socket of agents, which is no request",
  "GET /docs": "the viewer of the API, a page",
  "GET /openapi.json": "the document of the contract itself",
  "GET /backups/{}/download": "POST makes a link that works once, so that no credential stands in a URL",
  "GET /internal/config": "the metrics listener and the page of an operator show it",
  "GET /internal/metrics": "served at /metrics of the internal listener",
  "GET /internal/node": "GET /admin/nodes has every node",
  "POST /internal/cache/invalidate": "nodes hear of changes over the bus, and caches live for seconds",
  "POST /internal/commands/dispatch": "nodes hand commands to each other over the bus, with PostgreSQL as the truth",
  "POST /internal/drain": "a signal drains a node, and POST /admin/nodes/{nodeId}/drain another",
  "POST /internal/events": "the outbox carries events between nodes",
  "POST /internal/jobs/{}/run": "POST /admin/jobs/{name}/run",
  "POST /internal/seed": "the command line seeds a demonstration",
};

const unnamed = (route: string): string => route.replaceAll(/\{\w+\}/g, "{}");
const designed = readFileSync(new URL("designed-operations.txt", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map(unnamed);
const offered = new Set(Object.values(contract).flatMap(({ operations }) => Object.values<Operation>(operations).flatMap(({ rest }) => rest.map(unnamed))));

test("every designed operation is offered, or served elsewhere for a reason", () => {
  expect(designed.length).toBeGreaterThan(280);
  expect(designed.filter((route) => !offered.has(route)).sort()).toEqual(Object.keys(ELSEWHERE).sort());
});

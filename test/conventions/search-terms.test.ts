// A newcomer who searches for the field's term finds the file of the concept, by its name or by its opening comment.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SERVER = fileURLToPath(new URL("../../server", import.meta.url));
/** A search with more results than this sends the reader from file to file. */
const MOST_RESULTS = 3;

const openingOf = (text: string): string => {
  const lines = text.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  return lines
    .slice(0, end)
    .map((line) => line.replace(/^\/\/ ?/, ""))
    .join(" ");
};

const FILES = readdirSync(SERVER, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ path: `server/${name}`, name: name.split("/").at(-1) ?? "", opening: openingOf(readFileSync(`${SERVER}/${name}`, "utf8")).toLowerCase() }));

/** File names first; opening comments where no file has the term in its name. */
const search = (term: string): readonly string[] => {
  const byName = FILES.filter(({ name }) => name.includes(term.replaceAll(" ", "-")));
  const found = byName.length > 0 ? byName : FILES.filter(({ opening }) => opening.includes(term));
  return found.map(({ path }) => path);
};

test.each([
  ["connect rate limit", "server/gateway/channel/rate-limits.ts"],
  ["cross-node pub/sub", "server/platform/cluster/bus.ts"],
  ["heartbeat interval", "server/gateway/channel/heartbeat-pacing.ts"],
  ["duplicate identity", "server/gateway/channel/duplicate-probe.ts"],
  ["presence flush", "server/gateway/channel/presence-flush.ts"],
  ["idempotency", "server/platform/idempotency.ts"],
  ["graceful shutdown", "server/core/lifecycle/shutdown.ts"],
  ["cluster membership", "server/features/admin/index.ts"],
  ["stream re-authentication", "server/gateway/call/stream-reauthorizer.ts"],
  ["redelivery backoff", "server/features/commands/rules.ts"],
])('a search for "%s" finds %s', (term, file) => {
  const found = search(term);
  expect(found).toContain(file);
  expect(found.length).toBeLessThanOrEqual(MOST_RESULTS);
});

test("the search finds nothing for a term that no file explains", () => {
  expect(search("quantum entanglement")).toEqual([]);
});

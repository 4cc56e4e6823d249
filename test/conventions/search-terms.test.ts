// A newcomer who searches for the field's term finds the file of the concept, by its name or by its opening comment.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SERVER = fileURLToPath(new URL("../../server", import.meta.url));
/** A reader looks at this many results before another word seems better. */
const RESULTS_READ = 5;

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
  .sort()
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
  ["announcement", "server/features/announcements/index.ts"],
  ["forecast", "server/features/costs/forecast-rules.ts"],
  ["budgets", "server/features/costs/budgets.ts"],
  ["cost allocation", "server/features/costs/index.ts"],
  ["impersonation", "server/gateway/auth/impersonation.ts"],
  ["batch request", "server/features/batch/index.ts"],
  ["data export", "server/features/data-exports/index.ts"],
  ["retention", "server/core/retention.ts"],
  ["safety backup", "server/features/backups/restoring.ts"],
  ["recovery sheet", "server/features/backup-destinations/recovery.ts"],
  ["restic repositories", "server/wiring/repositories.ts"],
  ["missed run", "server/features/backup-policies/running.ts"],
  ["canary", "server/features/rollouts/index.ts"],
  ["wilson", "server/core/many/threshold.ts"],
  ["maintenance window", "server/features/rollouts/rules/windows.ts"],
  ["for no key update skip locked", "server/core/many/engine.ts"],
  ["bulk operations", "server/features/bulk-operations/index.ts"],
  ["idempotency", "server/platform/idempotency.ts"],
  ["graceful shutdown", "server/core/lifecycle/shutdown.ts"],
  ["cluster membership", "server/features/admin/index.ts"],
  ["stream re-authentication", "server/gateway/call/stream-reauthorizer.ts"],
  ["redelivery backoff", "server/features/commands/rules.ts"],
  ["verification of custom domains", "server/features/domains/checking.ts"],
  ["mesh routes", "server/features/mesh-routes/index.ts"],
  ["failover", "server/features/mesh-routes/choose.ts"],
  ["tunnels", "server/features/tunnels/index.ts"],
  ["carriers", "server/edge/carrier/carriers.ts"],
  ["acme", "server/features/domains/acme/authority.ts"],
  ["sni", "server/features/domains/served.ts"],
  ["caa", "server/features/domains/dns.ts"],
  ["ssrf", "server/platform/outbound/outbound.ts"],
  ["leader election", "server/core/leader-election.ts"],
  ["hmac verification", "server/gateway/auth/agent.ts"],
  ["webhook retry", "server/features/webhooks/delivery/retry-schedule.ts"],
  ["rate limit", "server/gateway/call/rate-limits.ts"],
  ["idempotency key", "server/gateway/call/idempotency.ts"],
  ["command timeout", "server/features/commands/jobs.ts"],
  ["device limits", "server/platform/database/device-limits.ts"],
])('a search for "%s" finds %s', (term, file) => {
  expect(search(term).slice(0, RESULTS_READ)).toContain(file);
});

test("the search finds nothing for a term that no file explains", () => {
  expect(search("quantum entanglement")).toEqual([]);
});

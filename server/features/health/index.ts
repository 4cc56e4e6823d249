// Health: whether the process is alive and ready for traffic, and the state of its dependencies.
import { contract, type Dependency, type HealthCheckResult } from "../../../protocol/index.ts";
import { type Clock, isoText } from "../../core/clock.ts";
import { implement, type Reply } from "../../core/feature.ts";
import type { Feature } from "../kit.ts";
import type { CheckOutcome, HealthCheck } from "./checks.ts";
import { notConfigured, overall, type Status, slowed } from "./rules.ts";

export { billingCheck, type CheckOutcome, clockCheck, databaseCheck, loadCheck, mailCheck, redisCheck } from "./checks.ts";

export interface HealthDeps {
  readonly clock: Clock;
  readonly version: string;
  /** Needs one named `database`; shows `objectStore`, `billingProvider`, `mail`, `agentBinaries` and `sloTracking` if they are present. */
  readonly checks: readonly HealthCheck[];
  /** True once this node drains. */
  readonly isDraining: () => boolean;
  readonly startedAtMs: number;
}

// A check that hangs counts as failed, so a probe gets its answer before the prober gives up.
const CHECK_TIMEOUT_MS = 3_000;
// Probes within this time share one run of the checks.
const CHECKED_EVERY_MS = 1_000;
const DEEP_EVERY_MS = 10_000;

interface Checked extends HealthCheckResult {
  readonly required: boolean;
  readonly message: string;
}

export const createHealth = ({ clock, version, checks, isDraining, startedAtMs }: HealthDeps): Feature<typeof contract.health> => {
  const timestamp = () => isoText(clock.now());
  const uptime = () => Math.max(0, Math.round(clock.elapsed() - startedAtMs));
  const runAll = () => Promise.all(checks.map((each) => runCheck(each, clock)));
  const recent = remember(runAll, clock, CHECKED_EVERY_MS);
  const deepRecent = remember(runAll, clock, DEEP_EVERY_MS);
  const answer = (reply: Reply, isWell: boolean): void => {
    if (!isWell) reply.status = 503;
  };

  const handlers = implement(contract.health, {
    check: async ({ reply }) => {
      const status = overall(await recent());
      answer(reply, status !== "unhealthy");
      return { status, timestamp: timestamp(), version };
    },
    full: async ({ reply }) => {
      const results = await recent();
      const status = overall(results);
      answer(reply, status !== "unhealthy");
      return { overall: status, checks: results.map(({ required: _required, ...shown }) => shown), timestamp: timestamp(), uptime: uptime(), version };
    },
    ready: async ({ reply }) => {
      const results = await recent();
      const accepting: { name: string; status: Status } = { name: "accepting", status: isDraining() ? "unhealthy" : "healthy" };
      // A node keeps serving without an optional dependency.
      const word = ({ required, status }: Checked): Status => (required || status === "healthy" ? status : "degraded");
      const shown = [
        ...results.map((each) => ({ name: each.name, status: word(each), ...(each.status === "healthy" ? {} : { message: each.message }) })),
        accepting,
      ];
      const ready = shown.every(({ status }) => status !== "unhealthy");
      answer(reply, ready);
      return { ready, checks: shown, timestamp: timestamp() };
    },
    // Runs no check: the orchestrator must not restart every node because the database is away.
    live: async () => ({ alive: true, timestamp: timestamp(), uptime: uptime() }),
    deep: async ({ reply }) => {
      const results = await deepRecent();
      const status = overall(results);
      answer(reply, status !== "unhealthy");
      return { status, timestamp: timestamp(), version, dependencies: dependenciesOf(results) };
    },
    status: async ({ reply }) => {
      const results = await recent();
      const status = overall(results);
      answer(reply, status !== "unhealthy");
      const incidents = results
        .filter((each) => each.status !== "healthy")
        .map(({ name, status: how, timestamp: since }) => ({ title: `${name} is ${how}`, since }));
      return { status, incidents, components: results.map(({ name, status: how }) => ({ name, status: how })) };
    },
  });
  return { handlers };
};

const runCheck = async ({ name, required, check }: HealthCheck, clock: Clock): Promise<Checked> => {
  const startedMs = clock.elapsed();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<CheckOutcome>((resolve) => {
    timer = setTimeout(() => resolve({ status: "unhealthy", message: "did not answer in time" }), CHECK_TIMEOUT_MS);
  });
  // Hides the error, because this route is public and the error may name hosts and accounts; the log has it.
  const outcome = await Promise.race([check().catch((): CheckOutcome => ({ status: "unhealthy", message: "does not answer" })), late]);
  clearTimeout(timer);
  const durationMs = Math.max(0, Math.round(outcome.latencyMs ?? clock.elapsed() - startedMs));
  return { name, required, status: slowed(outcome.status, durationMs), message: outcome.message, durationMs, timestamp: clock.now().toISOString() };
};

/** Shares one run among all callers and repeats it once it is too old. */
const remember = <T>(run: () => Promise<T>, clock: Clock, everyMs: number): (() => Promise<T>) => {
  let latest: { readonly atMs: number; readonly result: Promise<T> } | null = null;
  return () => {
    if (latest === null || clock.elapsed() - latest.atMs >= everyMs) latest = { atMs: clock.elapsed(), result: run() };
    return latest.result;
  };
};

const dependenciesOf = (results: readonly Checked[]) => {
  const of = (name: string): Dependency | null => {
    const found = results.find((each) => each.name === name);
    return found === undefined ? null : { status: found.status, message: found.message, latencyMs: found.durationMs, configured: true };
  };
  const [agentBinaries, sloTracking] = [of("agentBinaries"), of("sloTracking")];
  return {
    database: of("database") ?? notConfigured("the database"),
    objectStore: of("objectStore") ?? notConfigured("an object store"),
    billingProvider: of("billingProvider") ?? notConfigured("a billing provider"),
    mail: of("mail") ?? notConfigured("a mail server"),
    ...(agentBinaries === null ? {} : { agentBinaries }),
    ...(sloTracking === null ? {} : { sloTracking }),
  };
};

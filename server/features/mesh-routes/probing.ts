// Probes routers through the data path: a real connection to the target of the probe, or at least a question to the router's agent over its carrier. A
// session that is alive proves nothing: its router may reach nothing behind it.
import type { Duplex } from "node:stream";
import { contract, type DeviceId, type MeshRoute } from "../../../protocol/index.ts";
import { type DurableEvent, type Happened, happened, type SqlTx } from "../../core/events.ts";
import { type CarrierFacts, type Carriers, DialFailure } from "../../core/ports/carriers.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Job } from "../../platform/jobs.ts";
import type { FeatureKit } from "../kit.ts";
import { afterProbe, type RouteStanding, routeStandingOf, writeTarget } from "./choose.ts";
import { probeOf } from "./record.ts";
import { claimProbes, findRoute, lockRoute, patchRoute, probeSoon, type RouteRow, writeRouter } from "./store.ts";

export interface ProbingDeps extends Pick<FeatureKit, "db" | "clock" | "emit"> {
  readonly carriers: () => Pick<Carriers, "dial">;
  readonly changed: (tenantId: string) => void;
  readonly wakeJob: (name: string) => void;
  readonly onError: (error: unknown) => void;
}

export const PROBES_JOB = "mesh-routes.probes";
const EVERY_MS = 2_000;
const NEXT_MS = 10_000;
const AT_ONCE = 20;
const { events } = contract.meshRoutes;

export const aboutRoute = ({ routeId, name }: Pick<RouteRow, "routeId" | "name">) => ({ routeId: routeId as MeshRoute["routeId"], name }); // as: the column holds ids of routes

/** What a router is asked for: a connection, or only whether it knows the route. */
const questionOf = (row: RouteRow): string => {
  const probe = probeOf(row);
  if (probe !== null) return `${row.routeId}@${writeTarget(probe)}`;
  return row.host !== null && row.port !== null ? `${row.routeId}@${writeTarget({ host: row.host, port: row.port })}` : row.routeId;
};

const newsOf = (row: RouteRow, now: RouteStanding, scope: SystemScope): Happened<DurableEvent>[] => {
  const about = aboutRoute(row);
  const news: Happened<DurableEvent>[] = [];
  if (now.activeRouter !== null && row.activeRouter !== null && now.activeRouter !== row.activeRouter)
    news.push(happened(scope, events.failedOver, row.routeId, { ...about, from: row.activeRouter as DeviceId, to: now.activeRouter as DeviceId })); // as: the columns hold ids of devices
  if (now.status === row.status) return news;
  if (now.status === "down") news.push(happened(scope, events.down, row.routeId, about));
  if (now.status === "degraded") news.push(happened(scope, events.degraded, row.routeId, about));
  if (now.status === "active") news.push(happened(scope, events.recovered, row.routeId, about));
  return news;
};

export const createProbing = ({ db, clock, emit, carriers, changed, wakeJob, onError }: ProbingDeps) => {
  const ask = async (deviceId: string, question: string): Promise<string | null> => {
    let stream: Duplex | null = null;
    try {
      stream = await carriers().dial(deviceId, question);
      return null;
    } catch (error) {
      if (!(error instanceof DialFailure)) throw error;
      // The agent knows the route, and no target was named.
      return error.reason === "not_allowed" && !question.includes("@") ? null : error.reason;
    } finally {
      stream?.destroy();
    }
  };
  /** Writes what the probes have shown, and tells people what follows. */
  const settle = (scope: SystemScope, routeId: string, answers: ReadonlyMap<string, string | null>): Promise<boolean> =>
    db.tx(async (tx) => {
      const row = await lockRoute(tx, scope, routeId);
      if (row === null || !row.enabled || row.approval !== "approved") return false;
      const at = clock.now();
      const routers = row.routers.map((router) => {
        const reason = answers.get(router.deviceId);
        // Probes that follow each other at once, because somebody has come back, are one miss.
        const isAgain = reason != null && router.misses > 0 && at.getTime() - (router.checkedAt?.getTime() ?? 0) < NEXT_MS / 2;
        return reason === undefined || isAgain ? router : { ...router, ...afterProbe(router, reason), reason, checkedAt: at };
      });
      for (const router of routers) if (router.checkedAt === at) await writeRouter(tx, scope, router);
      const now = routeStandingOf(row, routers);
      const isNews = now.status !== row.status || now.activeRouter !== row.activeRouter;
      if (!isNews) return routers.some((router, index) => router.state !== row.routers[index]?.state);
      await patchRoute(tx, scope, routeId, { ...now, since: at });
      await emit(tx, newsOf(row, now, scope));
      return true;
    });
  const probe = async ({ tenantId, routeId }: { readonly tenantId: string; readonly routeId: string }): Promise<void> => {
    const scope = { tenantId } as SystemScope; // as: read from a row
    const row = await findRoute(db, scope, routeId);
    if (row === null) return;
    const question = questionOf(row);
    const answers = await Promise.all(row.routers.map(async ({ deviceId }) => [deviceId, await ask(deviceId, question)] as const));
    if (await settle(scope, routeId, new Map(answers))) changed(tenantId);
  };

  const job: Job = {
    name: PROBES_JOB,
    everyMs: EVERY_MS,
    run: async () => {
      const now = clock.now();
      const due = await claimProbes(db, { now, next: new Date(now.getTime() + NEXT_MS), limit: AT_ONCE });
      await Promise.all(due.map((each) => probe(each).catch(onError)));
      return due.length === AT_ONCE;
    },
  };
  const soon = async (sql: SqlTx, tenantId: string, deviceId: string): Promise<void> => {
    if (await probeSoon(sql, tenantId, deviceId, clock.now())) wakeJob(PROBES_JOB);
  };
  const opened = async ({ key, tenantId }: CarrierFacts): Promise<void> => {
    if (key.startsWith("dev_")) await soon(db, tenantId, key);
  };
  return {
    job,
    soon,
    /** A router that comes back is tried at once; one that leaves is found by the next probe, and by the next connection. */
    listener: { opened: (facts: CarrierFacts) => void opened(facts).catch(onError), closed: () => undefined },
  };
};

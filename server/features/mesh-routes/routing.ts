// Connects a consumer: finds the route, asks whether the device may take it, and opens a connection through a router. What is open ends when the device
// may no longer.
import type { Duplex } from "node:stream";
import { type Carriers, DialFailure } from "../../core/ports/carriers.ts";
import type { MeshConnection, MeshOwner } from "../../core/ports/mesh.ts";
import type { SystemScope } from "../../core/scope.ts";
import { createCached } from "../../core/structures/cached.ts";
import { createUseCounter } from "../../core/structures/use-counter.ts";
import type { Job } from "../../platform/jobs.ts";
import type { FeatureKit } from "../kit.ts";
import { type MeshTarget, readTarget, routersToTry, routesTo, writeTarget } from "./choose.ts";
import type { Consumers } from "./consumers.ts";
import { addRouteUse, allRoutes, ROUTE_USE, type RouteRow } from "./store.ts";

export interface MeshRoutingDeps extends Pick<FeatureKit, "clock"> {
  readonly db: FeatureKit["db"];
  readonly carriers: () => Pick<Carriers, "dial">;
  readonly consumers: Consumers;
  readonly settings?: { readonly recheckMs?: number } | undefined;
}

interface Open extends MeshOwner {
  readonly routeId: string;
  readonly stream: Duplex;
}
interface Plans {
  readonly routes: readonly RouteRow[];
}

const PLANS_MS = 1_000;
const RECHECK_MS = 2_000;
const USAGE_MS = 10_000;
const FORWARD = /^mrt_\w{1,60}$/;

export const createMeshRouting = ({ db, clock, carriers, consumers, settings = {} }: MeshRoutingDeps) => {
  const open = new Set<Open>();
  const counter = createUseCounter(ROUTE_USE);
  const plans = createCached<Plans>({
    load: async (tenantId) => {
      const rows = await allRoutes(db, { tenantId } as SystemScope); // as: of a carrier's owner
      return { routes: rows.filter(({ enabled, approval }) => enabled && approval === "approved") };
    },
    clock,
    ttlMs: PLANS_MS,
  });
  const scopeOf = ({ tenantId }: MeshOwner): SystemScope => ({ tenantId }) as SystemScope; // as: of a carrier's owner
  const mayUse = async (owner: MeshOwner, route: RouteRow): Promise<boolean> => (await consumers.roleOf(scopeOf(owner), route, owner.deviceId)) === "consumer";

  const findWay = async (owner: MeshOwner, authority: string): Promise<readonly { readonly route: RouteRow; readonly target: MeshTarget }[]> => {
    const { routes = [] } = (await plans.get(owner.tenantId)) ?? {};
    if (FORWARD.test(authority))
      return routes.flatMap((route) =>
        route.routeId === authority && route.host !== null && route.port !== null ? [{ route, target: { host: route.host, port: route.port } }] : [],
      );
    const target = readTarget(authority);
    return target === null ? [] : routesTo(routes, target).map((route) => ({ route, target }));
  };
  const dial = async (route: RouteRow, target: MeshTarget): Promise<Duplex> => {
    let failure = new DialFailure("offline");
    for (const deviceId of routersToTry(route)) {
      try {
        return await carriers().dial(deviceId, `${route.routeId}@${writeTarget(target)}`, { halfOpen: true });
      } catch (error) {
        if (!(error instanceof DialFailure)) throw error;
        failure = error;
        // Another router reaches nothing else; only one that is gone has a stand-in.
        if (error.reason !== "offline" && error.reason !== "full") break;
      }
    }
    throw failure;
  };

  const connect = async (owner: MeshOwner, authority: string): Promise<MeshConnection> => {
    for (const { route, target } of await findWay(owner, authority)) {
      if (!(await mayUse(owner, route))) continue;
      const stream = await dial(route, target);
      const { routeId } = route;
      const one: Open = { ...owner, routeId, stream };
      open.add(one);
      stream.once("close", () => open.delete(one));
      counter.add(routeId, { connections: 1 });
      return { stream, passed: (bytesIn, bytesOut) => counter.add(routeId, { bytesIn, bytesOut }) };
    }
    throw new DialFailure("not_allowed");
  };

  const check = async (each: Open): Promise<void> => {
    const { routes = [] } = (await plans.get(each.tenantId)) ?? {};
    const route = routes.find(({ routeId }) => routeId === each.routeId);
    if (route === undefined || !(await mayUse(each, route))) each.stream.destroy();
  };
  const recheck: Job = {
    name: "mesh-routes.recheck",
    everyMs: settings.recheckMs ?? RECHECK_MS,
    run: async () => {
      // One look for each pair of device and route, however many connections there are.
      const asked = new Map<string, Promise<void>>();
      for (const each of open) {
        const key = `${each.deviceId}|${each.routeId}`;
        const first = asked.get(key);
        asked.set(key, first === undefined ? check(each) : first.then(() => check(each)));
      }
      await Promise.all(asked.values());
    },
  };
  const usage: Job = { name: "mesh-routes.usage", everyMs: USAGE_MS, run: () => counter.flush((used) => addRouteUse(db, used, clock.now())) };
  return {
    connect,
    jobs: [recheck, usage],
    /** Something of the tenant's routes has changed. */
    forget: (tenantIds: readonly string[]): void => plans.forget([...tenantIds]),
  };
};
export type MeshRouting = ReturnType<typeof createMeshRouting>;

// Networks that devices offer to lead to: each becomes a route that waits for approval, once for each device. Who approves it may choose other consumers first.
import { contract, type RefusedNetwork } from "../../../protocol/index.ts";
import { isAppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import { judgeNetwork } from "../../core/networks.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { type JudgedRoute, judgeRoute } from "./input.ts";
import { aboutRoute } from "./probing.ts";
import { insertRoute, offeredRoutes } from "./store.ts";

const METRIC = 100;
const CONSUMERS = { deviceIds: [], tags: [], fleetIds: [], all: true };

const isPlanLimit = (error: unknown): boolean => isAppError(error) && error.code === "PLAN_LIMIT_EXCEEDED";

/** The routes that these networks ask for, each once, and the networks to which no route may lead. */
const judgeAll = (deviceId: string, networks: readonly string[]) => {
  const refused: RefusedNetwork[] = [];
  const asked = new Map<string, JudgedRoute>();
  for (const network of networks) {
    const judged = judgeNetwork(network, false);
    if ("refusal" in judged) {
      refused.push({ network, reason: judged.refusal });
      continue;
    }
    const { text } = judged.network;
    asked.set(text, judgeRoute({ name: text, kind: "subnet", network: text, routers: [{ deviceId, metric: METRIC }], consumers: CONSUMERS }));
  }
  return { refused, asked: [...asked.values()] };
};

export type Advertise = (scope: TenantScope, deviceId: string, networks: readonly string[]) => Promise<RefusedNetwork[]>;

export const createAdvertise = ({ db, clock, emit, plan }: Pick<FeatureKit, "db" | "clock" | "emit" | "plan">): Advertise => {
  const offer = (scope: TenantScope, deviceId: string, judged: JudgedRoute): Promise<"offered" | "conflict"> =>
    db.tx(async (tx) => {
      const found = await offeredRoutes(tx, scope, deviceId, [judged]);
      if (found.length > 0) return found.some(({ advertisedBy }) => advertisedBy === deviceId) ? "offered" : "conflict";
      await plan.require(tx, scope, "meshRoutes", 1);
      const [routeId, now] = [newId("mrt"), clock.now()];
      const origin = { createdBy: actorOf(scope.principal), advertisedBy: deviceId };
      await insertRoute(tx, scope, { routeId, ...origin, since: now, probeAt: now, status: "down", judged, routers: [{ deviceId, metric: METRIC }] });
      await emit(tx, [happened(scope, contract.meshRoutes.events.created, routeId, aboutRoute({ routeId, name: judged.name }))]);
      return "offered";
    });
  return async (scope, deviceId, networks) => {
    const { refused, asked } = judgeAll(deviceId, networks);
    const there = asked.length === 0 ? [] : await offeredRoutes(db, scope, deviceId, asked);
    for (const judged of asked) {
      const { name: network } = judged;
      const known = there.filter((row) => row.network === network);
      if (known.some(({ advertisedBy }) => advertisedBy === deviceId)) continue;
      try {
        if (known.length > 0 || (await offer(scope, deviceId, judged)) === "conflict") refused.push({ network, reason: "conflict" });
      } catch (error) {
        if (!isPlanLimit(error)) throw error;
        refused.push({ network, reason: "plan_limit" });
      }
    }
    return refused;
  };
};

// A mesh route as its callers and the agents see it.
import {
  DesiredMeshRoute as Desired,
  type DesiredMeshRoute,
  type EffectiveRoute,
  type MeshConsumers,
  type MeshRoute,
  MeshRoute as Record,
} from "../../../protocol/index.ts";
import { overlap } from "../../core/networks.ts";
import { recordOf } from "../../core/rows/records.ts";
import type { RouteRow } from "./store.ts";

type Networks = readonly { readonly routeId: string; readonly network: string | null }[];

export const consumersOf = ({ consumers }: Pick<RouteRow, "consumers">): MeshConsumers => consumers as MeshConsumers; // as: written by this feature alone
export const probeOf = ({ probe }: Pick<RouteRow, "probe">): MeshRoute["probe"] => probe as MeshRoute["probe"]; // as: written by this feature alone

const overlapping = ({ routeId, network }: RouteRow, networks: Networks): string[] =>
  network === null
    ? []
    : networks.filter((other) => other.routeId !== routeId && other.network !== null && overlap(other.network, network)).map((other) => other.routeId);

export const toMeshRoute = (row: RouteRow, networks: Networks): MeshRoute =>
  recordOf(Record, {
    ...row,
    routers: row.routers.map(({ deviceId, metric, state, reason, checkedAt }) => ({
      deviceId,
      metric,
      state,
      reason,
      checkedAt: checkedAt?.toISOString() ?? null,
    })),
    consumers: consumersOf(row),
    transport: "userspace",
    masquerade: true,
    probe: probeOf(row),
    overlaps: overlapping(row, networks),
    usage: {
      connections: Number(row.connections),
      bytesIn: Number(row.bytesIn),
      bytesOut: Number(row.bytesOut),
      lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    },
  });

export type MeshRole = "consumer" | "router";
export const toDesiredRoute = (row: RouteRow, role: MeshRole): DesiredMeshRoute =>
  recordOf(Desired, { ...row, role, listenPort: role === "consumer" ? row.listenPort : null });

const targetText = ({ kind, network, domains, host, port }: RouteRow): string =>
  kind === "subnet" ? (network ?? "") : kind === "domain" ? domains.join(", ") : `${host}:${port}`;

const whyNot = (row: RouteRow, role: MeshRole, deviceId: string): EffectiveRoute["reason"] => {
  if (!row.enabled) return "disabled";
  if (row.approval !== "approved") return row.approval === "rejected" ? "rejected" : "pending";
  if (row.activeRouter === null) return "no_router";
  return role === "router" && row.activeRouter !== deviceId ? "not_active_router" : null;
};

export const toEffective = (row: RouteRow, role: MeshRole, deviceId: string): EffectiveRoute => {
  const reason = whyNot(row, role, deviceId);
  return {
    routeId: row.routeId as EffectiveRoute["routeId"], // as: the column holds ids of routes
    name: row.name,
    kind: row.kind as EffectiveRoute["kind"], // as: written by this feature alone
    target: targetText(row),
    role,
    listenPort: row.listenPort,
    router: row.activeRouter as EffectiveRoute["router"], // as: the column holds ids of devices
    usable: reason === null,
    reason,
  };
};

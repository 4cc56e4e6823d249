// A tunnel as its callers see it.
import type { Tunnel } from "../../../protocol/index.ts";
import { Tunnel as TunnelRecord } from "../../../protocol/index.ts";
import { recordOf } from "../../core/rows/records.ts";
import type { TunnelRow } from "./store.ts";

/** The address of a host on the edge. */
export const urlOf = (hostname: string, edgeUrl: string): string => {
  const { protocol, port } = new URL(edgeUrl);
  return `${protocol}//${hostname}${port === "" ? "" : `:${port}`}/`;
};

const tcpUrl = (port: number, edgeUrl: string): string => `tcp://${new URL(edgeUrl).hostname}:${port}`;

export const createTunnelRecord =
  (edgeUrl: () => string) =>
  (row: TunnelRow): Tunnel =>
    recordOf(TunnelRecord, {
      ...row,
      id: row.tunnelId,
      url: row.port === null ? urlOf(row.hostname, edgeUrl()) : tcpUrl(row.port, edgeUrl()),
      access: { mode: row.accessMode, allow: row.allow, tokenHint: row.tokenHint },
      limits: { requestsPerMinute: row.requestsPerMinute, connections: row.maxConnections, idleSeconds: row.idleSeconds },
      usage: {
        requests: Number(row.requests),
        bytesIn: Number(row.bytesIn),
        bytesOut: Number(row.bytesOut),
        lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
      },
      failure: row.failure as Tunnel["failure"], // as: written by this feature alone
    });

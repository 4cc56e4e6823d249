// How a tunnel is, in a word.
import type { Tunnel } from "@mooring/client";
import { gatewayNow } from "../../ui/clock.ts";

type Shown = Pick<Tunnel, "status" | "health" | "expiresAt" | "failure" | "deviceId">;
interface TunnelState {
  /** One that has a tone. */
  readonly status: string;
  readonly word: string;
}

const UNREACHED: TunnelState = { status: "degraded", word: "service does not answer" };
export const isOver = ({ expiresAt }: Pick<Shown, "expiresAt">): boolean => expiresAt !== null && Date.parse(expiresAt) <= gatewayNow();

/** What matters most of its state and its health. */
export const tunnelState = (tunnel: Shown): TunnelState => {
  const { status, health, failure, deviceId } = tunnel;
  if (status === "stopped") return { status: "stopped", word: "stopped" };
  if (isOver(tunnel)) return { status: "expired", word: "expired" };
  if (status === "error") return UNREACHED;
  if (status === "pending") return { status: "pending", word: deviceId === undefined ? "waits for a connector" : "waits for its device" };
  if (health === "down") return { status: "offline", word: "not connected" };
  return failure === null ? { status: "active", word: "open" } : UNREACHED;
};
/** Visitors are served now. */
export const isOpenTunnel = (tunnel: Shown): boolean => tunnelState(tunnel).status === "active";

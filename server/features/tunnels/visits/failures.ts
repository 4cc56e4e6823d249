// What visitors are told when a tunnel does not serve them.
import type { DialFailureReason } from "../../../core/ports/carriers.ts";
import type { EdgeError } from "../../../core/ports/edge.ts";

const error = (status: number, code: string, message: string): EdgeError => ({ status, code, message });

export const EXPIRED = error(404, "TUNNEL_EXPIRED", "This address is not served any more.");
export const STOPPED = error(404, "TUNNEL_STOPPED", "This tunnel is stopped.");
export const NOT_ALLOWED = error(403, "ADDRESS_NOT_ALLOWED", "Your address may not come here.");
export const BLOCKED = error(403, "ENTITY_BLOCKED", "You may not come here.");
export const NEEDS_KEY = error(401, "UNAUTHORIZED", "This tunnel is private: sign in, or send an API key in x-mooring-key.");
export const NEEDS_TOKEN = error(401, "TOKEN_REQUIRED", "This tunnel needs its token, in x-mooring-token.");
export const FORBIDDEN = error(403, "FORBIDDEN", "You may not use this tunnel.");
export const TOO_MANY: EdgeError = { ...error(429, "TOO_MANY_REQUESTS", "You have too many open requests here."), headers: { "Retry-After": "1" } };
export const TUNNEL_FULL: EdgeError = {
  ...error(429, "TUNNEL_FULL", "This tunnel serves as many visitors at once as it may."),
  headers: { "Retry-After": "1" },
};
export const tooFast = (seconds: number): EdgeError => ({
  ...error(429, "RATE_LIMIT_EXCEEDED", "This tunnel has got as many requests in this minute as it may."),
  headers: { "Retry-After": String(seconds) },
});
export const TOO_SLOW = error(504, "SERVICE_TIMEOUT", "The service has not answered in time.");
export const BROKEN = error(502, "SERVICE_BROKE_OFF", "The service ended the connection before it answered.");
export const BAD_TARGET = error(400, "TARGET_INVALID", "The request's path is malformed.");

const DIALED: Readonly<Record<DialFailureReason, EdgeError>> = {
  offline: error(502, "DEVICE_OFFLINE", "The device of this tunnel is not connected."),
  full: { ...error(503, "TUNNEL_BUSY", "Too much is under way here. Try again in a moment."), headers: { "Retry-After": "2" } },
  unknown: error(502, "TUNNEL_NOT_READY", "The device does not know this tunnel yet. Try again in a moment."),
  not_allowed: error(502, "SERVICE_NOT_ALLOWED", "The device does not allow this service."),
  refused: error(502, "SERVICE_UNREACHABLE", "Nothing listens at the service of this tunnel."),
  timeout: TOO_SLOW,
  unreachable: error(502, "SERVICE_UNREACHABLE", "The device cannot reach the service of this tunnel."),
};
export const dialErrorOf = (reason: DialFailureReason): EdgeError => DIALED[reason];

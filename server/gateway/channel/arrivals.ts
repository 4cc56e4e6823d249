// What becomes of upgrades, counted and logged: a line for each that is accepted, and for refusals as many as anybody can read.
import type { Clock } from "../../core/clock.ts";
import type { AppError } from "../../core/errors.ts";
import type { RequestInfo } from "../request-info.ts";
import type { Session } from "./session.ts";
import { type ChannelStats, countUp } from "./stats.ts";
import { newBucket, takeToken } from "./tokens.ts";

export interface ArrivalsDeps {
  readonly clock: Clock;
  readonly stats: ChannelStats;
  readonly log: { info(fields: object, message: string): void };
}

/** Whoever is refused comes back, and thousands may come at once; the metrics count them all. */
const LINES = { perSecond: 10, burst: 50 } as const;

/** What was exhausted, for a refusal that says nothing about the agent's identity; null for the others. */
const exhaustedBy = ({ code, details }: Pick<AppError, "code" | "details">): string | null => {
  if (code === "NODE_DRAINING") return "draining";
  if (code === "SERVICE_UNAVAILABLE") return String(details?.["reason"] ?? "unavailable");
  return code === "RATE_LIMIT_EXCEEDED" ? String(details?.["bucket"] ?? "limit") : null;
};

export const createArrivals = ({ clock, stats, log }: ArrivalsDeps) => {
  const lines = newBucket(LINES, clock.elapsed());
  let unlogged = 0;
  return {
    accepted: ({ requestId }: RequestInfo, { id, deviceId, tenantId }: Pick<Session, "id" | "deviceId" | "tenantId">): void => {
      countUp(stats.connects, "accepted");
      log.info({ requestId, sessionId: id, deviceId, tenantId }, "socket accepted");
    },
    refused: ({ requestId }: RequestInfo, { code, status, details }: AppError): void => {
      const reason = typeof details?.["reason"] === "string" ? details["reason"] : code;
      countUp(stats.connects, reason);
      const exhausted = exhaustedBy({ code, details });
      if (exhausted !== null) countUp(stats.turnedAway, exhausted);
      if (!takeToken(lines, LINES, clock.elapsed())) {
        unlogged += 1;
        return;
      }
      log.info({ requestId, status, code, reason, ...(unlogged === 0 ? {} : { unlogged }) }, "socket refused");
      unlogged = 0;
    },
  };
};

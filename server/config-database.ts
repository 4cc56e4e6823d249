// The addresses of PostgreSQL and Redis, and how a node divides its PostgreSQL sessions among classes of work and tenants, as settings.
import { z } from "zod";
import { integer } from "./config-values.ts";
import { redisPlaceOf } from "./platform/cluster/redis-urls.ts";
import { urlsOf } from "./platform/database/database-urls.ts";

/** Text that the function understands; it throws a sentence. */
const readBy = (read: (text: string) => unknown) =>
  z.string().superRefine((text, context) => {
    try {
      read(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: error instanceof Error ? error.message : String(error) });
    }
  });
export const databaseUrl = readBy(urlsOf);
export const redisUrl = readBy(redisPlaceOf);

const sessions = z.coerce.number().int().min(1).max(200).optional();

export const databaseSettings = {
  DATABASE_POOL: integer(20, 4, 200).describe("PostgreSQL sessions of this process, divided among the four classes of work; one more asks how it fares"),
  DATABASE_SESSIONS_AGENTS: sessions.describe("sessions for agents: hellos, claims, acknowledgements, reports; default 30 % of DATABASE_POOL"),
  DATABASE_SESSIONS_WRITES: sessions.describe("sessions for what people and API keys change; default 30 % of DATABASE_POOL"),
  DATABASE_SESSIONS_LISTS: sessions.describe("sessions for what people and API keys read, exports too; default 20 % of DATABASE_POOL"),
  DATABASE_SESSIONS_JOBS: sessions.describe("sessions for background work; default 20 % of DATABASE_POOL"),
  DATABASE_TENANT_PERCENT: integer(50, 1, 100).describe(
    "share of each class's sessions that one tenant may hold on this node; beyond it the tenant waits 2 s, then gets 429 RATE_LIMIT_EXCEEDED",
  ),
  DATABASE_LIST_SECONDS: integer(3, 1, 5).describe("time limit of a statement of a read or an export"),
};

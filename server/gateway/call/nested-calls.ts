// The calls that one request carries: each takes the whole way of a request of its own, with the credential of the one that carries it.
import { isBatchable } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { CallOrigin, NestedCalls } from "../../core/ports/in-process.ts";
import { callInProcess } from "../http/in-process-request.ts";
import type { HttpTransport } from "../http/request-context.ts";
import { errorBody } from "../rest/envelope.ts";
import { createRouter } from "../rest/router.ts";
import type { Entry } from "./operation-table.ts";

/** What proves the caller, tells where it is, and chooses the form of the answer. */
const OF_ORIGIN = [
  ...["host", "origin", "authorization", "cookie", "x-api-key", "x-csrf-token", "x-svc-tenant-id"],
  ...["x-forwarded-for", "user-agent", "traceparent", "x-svc-error-shape"],
] as const;

export interface NestedCallsDeps {
  readonly entries: readonly Entry[];
  readonly http: HttpTransport;
  readonly clock: Clock;
}

export const createNestedCalls = ({ entries, http, clock }: NestedCallsDeps): NestedCalls => {
  const route = createRouter(entries);
  const headersOf = ({ headers }: CallOrigin): Record<string, string> => {
    const chosen: Record<string, string> = {};
    for (const name of OF_ORIGIN) if (headers[name] !== undefined) chosen[name] = headers[name];
    return chosen;
  };
  return {
    isAllowed: (method, path) => {
      const match = route(method, path);
      // Others at this place are for agents, and an agent's signature carries no calls.
      return match.kind !== "found" || match.route.entries.some(({ entry }) => isBatchable(entry.op));
    },
    call: (origin, call) =>
      callInProcess(http, { ...call, path: `${origin.prefix}${call.path}`, headers: { ...headersOf(origin), ...call.headers }, ip: origin.peer }),
    refuse: ({ shape }, requestId, error) => ({
      status: error.status,
      headers: { "x-request-id": requestId },
      body: JSON.stringify(errorBody(error, { requestId, shape }, clock.now().toISOString())),
    }),
  };
};

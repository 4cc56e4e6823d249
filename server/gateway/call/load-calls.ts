// The gateway's side of load tests: a REST transport of its own that serves only harmless reads, and no rate limits, because the test paces itself.
import type { LimitClass } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { LoadAnswer, LoadCaller, LoadCalls } from "../../core/ports/load-calls.ts";
import type { Identity } from "../auth/identity.ts";
import type { HttpRequest } from "../http/http-message.ts";
import { answerOf } from "../http/in-process-request.ts";
import type { HttpTransport } from "../http/request-context.ts";
import type { createRequestInfo } from "../http/request-info.ts";
import { createRest, splitPrefix } from "../rest/rest.ts";
import { createRouter, pick } from "../rest/router.ts";
import type { Entry } from "./operation-table.ts";
import { createPipeline, type PipelineDeps } from "./pipeline.ts";

export interface LoadCallsDeps {
  readonly entries: readonly Entry[];
  readonly clock: Clock;
  readonly pipeline: PipelineDeps;
  readonly infoOf: ReturnType<typeof createRequestInfo>;
}

const CLASSES: ReadonlySet<LimitClass> = new Set(["none", "standard", "anonymous"]);

/** Reads by users that neither wait, nor reveal a secret, nor guard against guessing. */
const isHarmless = ({ op }: Entry): boolean =>
  op.kind === "query" &&
  op.rest.some((rest) => rest.startsWith("GET ")) &&
  (op.auth.includes("user") || op.auth.includes("public")) &&
  op.permission !== "platform" &&
  op.replay === "repeatable" &&
  op.maxWaitSeconds === undefined &&
  CLASSES.has(op.limit);

const NO_LIMITS: PipelineDeps["limits"] = { admit: () => null, admitInput: () => null };
const BODY_CODE = /"code":"([A-Z_]{1,64})"/;

const requestOf = (target: string, { tenantId }: LoadCaller): HttpRequest => {
  const [path = "", query = ""] = target.split("?", 2);
  const headers = { host: "localhost", authorization: "Bearer load-test", "x-svc-tenant-id": tenantId };
  return { method: "GET", path, query, headers, repeated: new Set(), peer: "127.0.0.1" };
};

export const createLoadCalls = ({ entries, clock, pipeline: deps, infoOf }: LoadCallsDeps): LoadCalls => {
  const harmless = entries.filter(isHarmless);
  const route = createRouter(harmless);
  const pipeline = createPipeline({ ...deps, limits: NO_LIMITS });
  const transportFor = (caller: LoadCaller): HttpTransport => {
    const identity: Identity = { kind: "user", userId: caller.userId, email: caller.email, claimedTenantId: caller.tenantId };
    const authenticate = async (): Promise<Identity> => identity;
    return createRest({ entries: harmless, pipeline, clock, infoOf, authenticate, reauthenticate: authenticate });
  };
  // Making a transport compiles the whole table, so each caller has one for as long as it makes calls.
  const transports = new WeakMap<LoadCaller, HttpTransport>();
  return {
    operationOf: (target) => {
      const split = splitPrefix(target.split("?", 1)[0] ?? "");
      const match = split === null ? null : route("GET", split.rest);
      return match?.kind === "found" ? pick(match.route, "user").entry.id : null;
    },
    get: async (caller, target): Promise<LoadAnswer> => {
      const transport = transports.get(caller) ?? transportFor(caller);
      transports.set(caller, transport);
      const { status, body } = await answerOf(transport, requestOf(target, caller));
      return { status, code: status < 400 ? null : (BODY_CODE.exec(String(body))?.[1] ?? `HTTP_${status}`) };
    },
  };
};

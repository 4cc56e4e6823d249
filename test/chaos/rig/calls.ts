// Single calls of a scenario to one chosen node, with an API key; the scenario checks their answers.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import {
  callWithRetry,
  createHttp,
  type Http,
  type HttpAnswer,
  NoAnswer,
  pause,
  type RetryOptions,
  systemTime as time,
} from "../../../agent-sim/agent/index.ts";
import type { TenantCredentials } from "../../../agent-sim/fleet/portal.ts";
import type { Node } from "./node.ts";
import { type Rig, urlOf } from "./rig.ts";

const SOCKETS = 64;
const CALLS_MS = 120_000;
const LOOK_MS = 300;

export const headersOf = ({ apiKey, tenantId }: TenantCredentials): Readonly<Record<string, string>> => ({ "x-api-key": apiKey, "x-svc-tenant-id": tenantId });

export const patience = (forMs: number): RetryOptions => ({ time, random: Math.random, untilMs: time.elapsedMs() + forMs });

/** Opens one client per node and closes them after use. */
export const withClients = async <T>(nodes: readonly Node[], use: (clients: readonly Http[]) => Promise<T>): Promise<T> => {
  const clients = nodes.map((node) => createHttp(urlOf(node), SOCKETS));
  try {
    return await use(clients);
  } finally {
    for (const client of clients) client.close();
  }
};

/** Null if the call got no answer, so its outcome is unknown. */
export const orNoAnswer = (call: Promise<HttpAnswer>): Promise<HttpAnswer | null> =>
  call.catch((error: unknown) => {
    if (error instanceof NoAnswer) return null;
    throw error;
  });

const Readiness = z.object({ checks: z.array(z.object({ name: z.string(), status: z.string() })) });
/** What the node's readiness says of one check; undefined while it says nothing. */
export const statusOfCheck = async (http: Http, check: string): Promise<string | undefined> => {
  const answer = await orNoAnswer(http.call({ method: "GET", path: "/v1/health/ready" }));
  return Readiness.safeParse(answer?.body).data?.checks.find(({ name }) => name === check)?.status;
};

export const isSuccess = ({ status }: HttpAnswer): boolean => status >= 200 && status < 300;

/** Repeats the call until it is answered, and returns the answer's data. Throws what the gateway refuses. */
export const send = async (
  { http, credentials }: Pick<Rig, "http" | "credentials">,
  method: "POST" | "PUT" | "PATCH",
  path: string,
  body: object,
  withinMs = 60_000,
): Promise<Readonly<Record<string, unknown>>> => {
  const headers = { ...headersOf(credentials), "idempotency-key": randomUUID() };
  const answer = await callWithRetry(() => http.call({ method, path: `/v1${path}`, body: JSON.stringify(body), headers }), patience(withinMs));
  if (!isSuccess(answer)) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return (answer.body as { readonly data: Readonly<Record<string, unknown>> }).data; // as: an answer of the gateway
};

/** Works through the items in order, that many at a time. */
export const inLanes = async <T>(items: readonly T[], lanes: number, work: (item: T, index: number) => Promise<unknown>): Promise<void> => {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) await work(items[index] as T, index);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
};

export const tally = (map: Map<string, number>, key: string): void => void map.set(key, (map.get(key) ?? 0) + 1);

const Settling = z.object({ status: z.string() });
type HttpCall = Parameters<Http["call"]>[0];
/** Calls with these headers of a caller, repeated until somebody answers. */
export const createCalls = (http: Http, caller: Readonly<Record<string, string>>, { lookMs = LOOK_MS } = {}) => {
  const ask = (method: HttpCall["method"], path: string, body?: object): Promise<HttpAnswer> => {
    const headers = { ...caller, "content-type": "application/json", ...(method === "GET" ? {} : { "idempotency-key": randomUUID() }) };
    return callWithRetry(
      () => http.call({ method, path: `/v1${path}`, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }),
      patience(CALLS_MS),
    );
  };
  const data = async <S extends z.ZodType>(schema: S, method: HttpCall["method"], path: string, body?: object): Promise<z.output<S>> => {
    const answer = await ask(method, path, body);
    if (!isSuccess(answer)) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return schema.parse(z.object({ data: z.unknown() }).parse(answer.body).data);
  };
  /** The state once it is one of these; the last one that it had when the time is over. */
  const settled = async (path: string, states: readonly string[], withinMs: number): Promise<string> => {
    const untilMs = time.elapsedMs() + withinMs;
    for (;;) {
      const { status } = await data(Settling, "GET", path);
      if (states.includes(status) || time.elapsedMs() > untilMs) return status;
      await pause(time, lookMs);
    }
  };
  return { ask, data, settled };
};
export type Calls = ReturnType<typeof createCalls>;

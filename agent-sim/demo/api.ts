// The public API as the demo's story uses it, like a script with a key.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { callWithRetry, type Http, type HttpCall, hasSucceeded, refusal, type Time } from "../agent/index.ts";
import { pageOf } from "../fleet/page.ts";
import { authOf, type TenantCredentials } from "../fleet/portal.ts";

const WITHIN_MS = 15_000;
const MAX_ITEMS = 100;

const One = z.object({ data: z.unknown() });
const Page = pageOf(z.unknown());

export interface DemoApi {
  send<Item extends z.ZodType>(method: "POST" | "PATCH", path: string, body: object, item: Item): Promise<z.output<Item>>;
  /** The newest 100 of a list. */
  list<Item extends z.ZodType>(path: string, item: Item): Promise<readonly z.output<Item>[]>;
}

export const createDemoApi = (http: Http, credentials: TenantCredentials, { time, signal }: { readonly time: Time; readonly signal: AbortSignal }): DemoApi => {
  const call = async (request: HttpCall): Promise<unknown> => {
    const headers = { ...authOf(credentials), ...(request.method === "POST" ? { "idempotency-key": randomUUID() } : {}) };
    const answer = await callWithRetry(() => http.call({ ...request, headers }), {
      time,
      random: Math.random,
      untilMs: time.elapsedMs() + WITHIN_MS,
      signal,
    });
    if (!hasSucceeded(answer)) throw refusal(`the gateway refused ${request.method} ${request.path}`, answer);
    return answer.body;
  };
  return {
    send: async (method, path, body, item) => item.parse(One.parse(await call({ method, path, body: JSON.stringify(body) })).data),
    list: async (path, item) => Page.parse(await call({ method: "GET", path: `${path}?pageSize=${MAX_ITEMS}` })).data.map((one) => item.parse(one)),
  };
};

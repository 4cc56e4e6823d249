// Single calls of a bench that change something, with a tenant's API key.
import { randomUUID } from "node:crypto";
import type { Http } from "../../agent-sim/agent/index.ts";
import type { BenchTenant } from "./gateway.ts";

export interface Caller {
  /** Returns the answer's data. Throws what the gateway refuses. */
  post(path: string, body: object): Promise<Readonly<Record<string, unknown>>>;
}

export const authOf = ({ apiKey, tenantId }: BenchTenant) => ({ "x-api-key": apiKey, "x-svc-tenant-id": tenantId });

export const createCaller = (http: Http, tenant: BenchTenant): Caller => ({
  post: async (path, body) => {
    const headers = { ...authOf(tenant), "idempotency-key": randomUUID() };
    const answer = await http.call({ method: "POST", path: `/v1${path}`, headers, body: JSON.stringify(body) });
    if (answer.status > 299) throw new Error(`POST ${path} answered ${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`);
    return (answer.body as { readonly data: Readonly<Record<string, unknown>> }).data; // as: an answer of the gateway
  },
});

// What a script does through the public API: provision devices, queue commands, read them back. Every call may be repeated safely.
import { z } from "zod";
import { Command, Pagination } from "../../protocol/index.ts";
import { type Http, type HttpAnswer, type HttpRequest, Identity, type Member, type Patience, persist, refusal, toMember } from "../agent/index.ts";

export interface Credentials {
  readonly apiKey: string;
  readonly tenantId: string;
}

export interface NewCommand {
  readonly deviceId: string;
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly requiresAck: boolean;
}
export interface Queued {
  readonly commandId: string;
  /** An earlier attempt had been carried out already. */
  readonly replayed: boolean;
}

export interface Portal {
  provision(fingerprints: readonly string[], key: string, patience: Patience): Promise<readonly Member[]>;
  /** `onAttempt` is called before each try. */
  queue(command: NewCommand, key: string, patience: Patience & { readonly onAttempt: () => void }): Promise<Queued>;
  /** Newest first. */
  list(
    deviceId: string,
    page: number,
    patience: Patience,
  ): Promise<{ readonly items: readonly Pick<Command, "commandId" | "status">[]; readonly hasMore: boolean }>;
}

const Provisioned = z.object({ data: z.array(Identity) });
const Created = z.object({ data: Command.pick({ commandId: true }) });
const Listed = z.object({ data: z.array(Command.pick({ commandId: true, status: true })), pagination: Pagination.pick({ hasMore: true }).optional() });
const PAGE = 100;

export const createPortal = (http: Http, { apiKey, tenantId }: Credentials): Portal => {
  const auth = { "x-api-key": apiKey, "x-svc-tenant-id": tenantId };
  const call = (request: HttpRequest): Promise<HttpAnswer> => http.call({ ...request, headers: { ...auth, ...request.headers } });
  const post = (path: string, key: string, body: unknown): HttpRequest => ({
    method: "POST",
    path,
    headers: { "idempotency-key": key },
    body: JSON.stringify(body),
  });

  return {
    provision: async (fingerprints, key, patience) => {
      const answer = await persist(() => call(post("/v1/devices/provision", key, { fingerprints, platform: "simulator" })), patience);
      if (answer.status !== 201) throw refusal("provisioning was refused", answer);
      return Provisioned.parse(answer.body).data.map(toMember);
    },
    queue: async ({ deviceId, ...command }, key, patience) => {
      const request = post(`/v1/devices/${deviceId}/commands`, key, command);
      const answer = await persist(() => {
        patience.onAttempt();
        return call(request);
      }, patience);
      if (answer.status !== 201 && answer.status !== 200) throw refusal("the command was refused", answer);
      return { commandId: Created.parse(answer.body).data.commandId, replayed: answer.headers["idempotent-replayed"] === "true" };
    },
    list: async (deviceId, page, patience) => {
      const answer = await persist(() => call({ method: "GET", path: `/v1/devices/${deviceId}/commands?page=${page}&pageSize=${PAGE}` }), patience);
      if (answer.status !== 200) throw refusal("listing commands was refused", answer);
      const { data, pagination } = Listed.parse(answer.body);
      return { items: data, hasMore: pagination?.hasMore ?? data.length === PAGE };
    },
  };
};

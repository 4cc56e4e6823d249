// Calls the public API like a script: provisions devices, queues commands, reads them back. Every call is safe to repeat.
import { z } from "zod";
import { Command } from "../../protocol/index.ts";
import {
  callWithRetry,
  type Http,
  type HttpAnswer,
  type HttpCall,
  hasSucceeded,
  IssuedIdentity,
  type PairedDevice,
  type RetryOptions,
  refusal,
  toPairedDevice,
} from "../agent/index.ts";
import { pageOf } from "./page.ts";

export interface PortalCredentials {
  readonly apiKey: string;
  /** Default: the key's. */
  readonly tenantId?: string | undefined;
}
export interface TenantCredentials extends PortalCredentials {
  readonly tenantId: string;
}

export const authOf = ({ apiKey, tenantId }: PortalCredentials): Readonly<Record<string, string>> =>
  tenantId === undefined ? { authorization: `Bearer ${apiKey}` } : { "x-api-key": apiKey, "x-svc-tenant-id": tenantId };

export interface PortalCommand {
  readonly deviceId: string;
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly requiresAck: boolean;
}
export interface Queued {
  readonly commandId: string;
  /** An earlier attempt had already taken effect. */
  readonly replayed: boolean;
}

/** What a person would enter about devices. */
export interface About {
  readonly platform: string;
  readonly tags: readonly string[];
}

export interface Portal {
  provision(fingerprints: readonly string[], key: string, retry: RetryOptions, about?: About): Promise<readonly PairedDevice[]>;
  /** Calls `onAttempt` before each attempt. */
  queue(command: PortalCommand, key: string, retry: RetryOptions & { readonly onAttempt: () => void }): Promise<Queued>;
  /** One page of a device's commands, newest first. */
  list(
    deviceId: string,
    page: number,
    retry: RetryOptions,
  ): Promise<{ readonly items: readonly Pick<Command, "commandId" | "status">[]; readonly hasMore: boolean }>;
}

const Provisioned = z.object({ data: z.array(IssuedIdentity) });
const Created = z.object({ data: Command.pick({ commandId: true }) });
const Listed = pageOf(Command.pick({ commandId: true, status: true }));
const PAGE = 100;

export const createPortal = (http: Http, credentials: PortalCredentials): Portal => {
  const auth = authOf(credentials);
  const call = (request: HttpCall): Promise<HttpAnswer> => http.call({ ...request, headers: { ...auth, ...request.headers } });
  const post = (path: string, key: string, body: unknown): HttpCall => ({
    method: "POST",
    path,
    headers: { "idempotency-key": key },
    body: JSON.stringify(body),
  });

  return {
    provision: async (fingerprints, key, retry, about = { platform: "simulator", tags: [] }) => {
      const answer = await callWithRetry(() => call(post("/v1/devices/provision", key, { fingerprints, ...about })), retry);
      if (!hasSucceeded(answer)) throw refusal("the gateway refused to provision devices", answer);
      return Provisioned.parse(answer.body).data.map(toPairedDevice);
    },
    queue: async ({ deviceId, ...command }, key, retry) => {
      const request = post(`/v1/devices/${deviceId}/commands`, key, command);
      const answer = await callWithRetry(() => {
        retry.onAttempt();
        return call(request);
      }, retry);
      if (!hasSucceeded(answer)) throw refusal("the gateway refused the command", answer);
      return { commandId: Created.parse(answer.body).data.commandId, replayed: answer.headers["idempotent-replayed"] === "true" };
    },
    list: async (deviceId, page, retry) => {
      const answer = await callWithRetry(() => call({ method: "GET", path: `/v1/devices/${deviceId}/commands?page=${page}&pageSize=${PAGE}` }), retry);
      if (!hasSucceeded(answer)) throw refusal("the gateway refused to list commands", answer);
      const { data, meta } = Listed.parse(answer.body);
      return { items: data, hasMore: meta.pagination.hasMore };
    },
  };
};

// From pairing to timeline with a client of openapi-typescript and openapi-fetch, under strict compiler settings.
import createClient from "openapi-fetch";
import { type ClientCredentials, equal, signed, value } from "../credentials.ts";
import type { components, paths } from "./generated/paths.ts";

type Command = components["schemas"]["Command"];

export const pairToTimeline = async ({ baseUrl, token, tenantId, apiKey }: ClientCredentials): Promise<void> => {
  const client = createClient<paths>({ baseUrl });
  const asUser = { Authorization: `Bearer ${token}` };
  const asKey = { "x-api-key": apiKey, "x-svc-tenant-id": tenantId };

  const initiated = await client.POST("/pairing/initiate", { body: { device_fingerprint: `openapi-fetch-${Date.now()}`, platform: "linux" } });
  const { pairing_code } = value(initiated).data;
  const prepared = await client.POST("/pairing/prepare-activation", { headers: asUser, body: { pairing_code, tenant_id: tenantId } });
  const { activation_token } = value(prepared).data;
  const activated = await client.POST("/pairing/activate", { body: { pairing_code, activation_token, user_email: "ana@example.org" } });
  const { device_id: deviceId, agent_id: agentId, shared_secret: secret } = value(activated).data;

  const params = { path: { deviceId }, header: { "Idempotency-Key": `key-${deviceId}` } };
  const queued = await client.POST("/devices/{deviceId}/commands", { headers: asKey, params, body: { type: "ping" } });
  const command: Command = value(queued).data;
  const again = await client.POST("/devices/{deviceId}/commands", { headers: asKey, params, body: { type: "ping" } });
  equal(again.response.headers.get("idempotent-replayed"), "true");
  equal(value(again).data.id, command.commandId);

  const ack = { status: "succeeded", output: { pong: true } };
  const acked = await client.POST("/devices/{deviceId}/commands/{commandId}/ack", {
    headers: signed({ agentId, tenantId, secret }, JSON.stringify(ack)),
    params: { path: { deviceId, commandId: command.commandId } },
    body: ack,
  });
  equal(value(acked).data.result, "applied");

  const timeline = await client.GET("/commands/{commandId}/timeline", { headers: asUser, params: { path: { commandId: command.commandId } } });
  equal(value(timeline).data.status, "succeeded");
  equal(value(timeline).data.events.at(-1)?.to, "succeeded");

  const unknown = await client.GET("/devices/{deviceId}", { headers: asUser, params: { path: { deviceId: "dev_unknown" } } });
  equal(unknown.error?.code, "DEVICE_NOT_FOUND");
  equal(unknown.error?.retryable, false);
};

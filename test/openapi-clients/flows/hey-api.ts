// From pairing to timeline with a client that @hey-api/openapi-ts generates, under strict compiler settings.
import { type ClientCredentials, equal, signed, value } from "../credentials.ts";
import { createClient } from "./generated/hey-api/client/index.ts";
import * as mooring from "./generated/hey-api/sdk.gen.ts";
import type { Command } from "./generated/hey-api/types.gen.ts";

export const pairToTimeline = async ({ baseUrl, token, tenantId, apiKey }: ClientCredentials): Promise<void> => {
  const open = createClient({ baseUrl });
  const asUser = createClient({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
  const asKey = createClient({ baseUrl, headers: { "x-api-key": apiKey, "x-svc-tenant-id": tenantId } });

  const initiated = await mooring.pairingInitiate({ client: open, body: { device_fingerprint: `hey-api-${Date.now()}`, platform: "linux" } });
  const { pairing_code } = value(initiated).data;
  const prepared = await mooring.pairingPrepareActivation({ client: asUser, body: { pairing_code, tenant_id: tenantId } });
  const { activation_token } = value(prepared).data;
  const activated = await mooring.pairingActivate({ client: open, body: { pairing_code, activation_token, user_email: "ana@example.org" } });
  const { device_id: deviceId, agent_id: agentId, shared_secret: secret } = value(activated).data;

  const queued = await mooring.commandsQueue({ client: asKey, path: { deviceId }, body: { type: "ping" }, headers: { "Idempotency-Key": `key-${deviceId}` } });
  const command: Command = value(queued).data;

  const ack = { status: "succeeded", output: { pong: true } };
  const agent = createClient({ baseUrl, headers: signed({ agentId, tenantId, secret }, JSON.stringify(ack)) });
  const acked = await mooring.commandsAck({ client: agent, path: { deviceId, commandId: command.commandId }, body: ack });
  equal(value(acked).data.result, "applied");

  const timeline = await mooring.commandsTimeline({ client: asUser, path: { commandId: command.commandId } });
  equal(value(timeline).data.status, "succeeded");
  equal(value(timeline).data.events.at(-1)?.to, "succeeded");

  const unknown = await mooring.devicesGet({ client: asUser, path: { deviceId: "dev_unknown" } });
  equal(unknown.error?.code, "DEVICE_NOT_FOUND");
};

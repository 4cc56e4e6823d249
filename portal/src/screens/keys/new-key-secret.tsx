// A key right after it was made: its secret, once, with a command that uses it.
import type { CreatedApiKey } from "@mooring/client";
import { SecretOnce } from "../../ui/secret-once.tsx";
import { exactTime } from "../../ui/time.tsx";
import { text } from "./text.ts";

const commandOf = ({ apiKey, tenantId, scopes }: CreatedApiKey): string =>
  `curl -H 'x-api-key: ${apiKey}' -H 'x-svc-tenant-id: ${tenantId}' ${location.origin}/v1/${scopes.length === 0 || scopes.includes("device:read") ? "devices" : "auth/me"}`;

export interface NewKeySecretProps {
  readonly made: CreatedApiKey;
  /** After a rotation: how long the secret before works. */
  readonly graceSeconds?: number;
  readonly onDone: () => void;
}

export const NewKeySecret = ({ made, graceSeconds, onDone }: NewKeySecretProps) => (
  <SecretOnce label={made.name} secret={made.apiKey} command={commandOf(made)} onDone={onDone}>
    {graceSeconds === undefined ? null : (
      <p>{graceSeconds === 0 ? text.oldEnded : text.oldUntil(exactTime(new Date(Date.parse(made.updatedAt) + 1_000 * graceSeconds).toISOString()))}</p>
    )}
  </SecretOnce>
);

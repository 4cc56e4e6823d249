// The credentials with which agents reach repositories of this installation.
import { z } from "zod";
import { type DeviceId, RepositoryRight, type TenantId } from "../../../protocol/index.ts";
import type { RepositoryClaim } from "../../core/ports/repository-access.ts";
import { createSignedValues } from "../../core/signed-values.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";

const CONTEXT = "backup repository tokens";

/** Short names: the token travels with each request. */
const Claim = z.strictObject({
  t: z.string(),
  d: z.string(),
  r: z.string(),
  g: RepositoryRight,
  n: z.boolean(),
  c: z.string().nullable(),
  e: z.int(),
});

export interface RepositoryTokens {
  mint(claim: RepositoryClaim): string;
  /** Null for a text that this installation has not made, or whose time is over. */
  read(token: string): RepositoryClaim | null;
}

export const createRepositoryTokens = (box: Pick<SecretBox, "deriveAll">, now: () => Date): RepositoryTokens => {
  const signed = createSignedValues(box, CONTEXT);
  return {
    mint: ({ tenantId, deviceId, repositoryId, right, mayInitialize, commandId, expiresAt }) =>
      signed.make({ t: tenantId, d: deviceId, r: repositoryId, g: right, n: mayInitialize, c: commandId, e: expiresAt.getTime() }),
    read: (token) => {
      const { data } = Claim.safeParse(signed.read(token));
      if (data === undefined || data.e <= now().getTime()) return null;
      const tenantId = data.t as TenantId; // as: only we sign it
      return {
        tenantId,
        deviceId: data.d as DeviceId,
        repositoryId: data.r,
        right: data.g,
        mayInitialize: data.n,
        commandId: data.c,
        expiresAt: new Date(data.e),
      };
    },
  };
};

// The credentials with which agents reach repositories of this installation: signed with a key derived from the master key, so any node can judge them
// without a look-up, and nothing is stored.
import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { type DeviceId, RepositoryRight, type TenantId } from "../../../protocol/index.ts";
import type { RepositoryClaim } from "../../core/ports/repository-access.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";

const CONTEXT = "backup repository tokens";
const MAX_LENGTH = 1_000;

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

const sign = (key: Uint8Array, text: string): Buffer => createHmac("sha256", key).update(text).digest();

const parse = (text: string): unknown => {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    return null;
  }
};

export const createRepositoryTokens = (box: Pick<SecretBox, "derive" | "deriveAll">, now: () => Date): RepositoryTokens => ({
  mint: ({ tenantId, deviceId, repositoryId, right, mayInitialize, commandId, expiresAt }) => {
    const text = Buffer.from(
      JSON.stringify({ t: tenantId, d: deviceId, r: repositoryId, g: right, n: mayInitialize, c: commandId, e: expiresAt.getTime() }),
    ).toString("base64url");
    return `${text}.${sign(box.derive(CONTEXT), text).toString("base64url")}`;
  },
  read: (token) => {
    const [text = "", signature = "", ...more] = token.length > MAX_LENGTH ? [] : token.split(".");
    const given = Buffer.from(signature, "base64url");
    const isOurs =
      more.length === 0 &&
      box.deriveAll(CONTEXT).some((key) => {
        const expected = sign(key, text);
        return given.length === expected.length && timingSafeEqual(given, expected);
      });
    if (!isOurs) return null;
    const { data } = Claim.safeParse(parse(text));
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
});

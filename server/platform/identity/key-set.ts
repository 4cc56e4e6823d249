// The published keys (JWKS) of an identity provider, fetched on demand, seldom, within limits of size and time.
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import type { Clock } from "../../core/clock.ts";
import type { Outbound } from "../../core/ports/outbound.ts";

/** The provider's keys cannot be fetched, so nobody knows whether the token is good. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

// We refuse a key this long after the provider has withdrawn it.
const KEPT_MS = 600_000;
// After every answer, for each of the two reasons to ask: tokens with unknown keys must not become load on the provider. They have a pause of their
// own, so that a key which the provider has just begun to use is found at once.
const PAUSE_MS = 30_000;
const TIMEOUT_MS = 5_000;
// Providers publish about ten kilobytes.
const MAX_BYTES = 262_144;

/** Follows no redirect: the operator names the address, OIDC_JWKS_URI. */
const fetchKeys = async (uri: string, outbound: Outbound): Promise<JWTVerifyGetKey> => {
  try {
    const headers = { accept: "application/json" };
    const { statusCode, body, truncated } = await outbound.send({
      url: uri,
      owner: "identity provider",
      timeoutMs: TIMEOUT_MS,
      maxBodyBytes: MAX_BYTES,
      headers,
    });
    if (statusCode !== 200) throw new KeysUnavailable(`the key set answers ${statusCode} instead of 200`);
    if (truncated) throw new KeysUnavailable(`the key set is larger than ${MAX_BYTES} bytes`);
    return createLocalJWKSet(JSON.parse(body.toString("utf8")) as JSONWebKeySet); // as: createLocalJWKSet checks it
  } catch (error) {
    throw error instanceof KeysUnavailable ? error : new KeysUnavailable("the key set cannot be fetched", { cause: error });
  }
};

/** Rejects with KeysUnavailable while the provider cannot be asked for the key, and with JOSE's own error when it has no such key. */
export const createKeySet = (uri: string, outbound: Outbound, clock: Pick<Clock, "elapsed">): JWTVerifyGetKey => {
  let keys: JWTVerifyGetKey | null = null;
  let fetchedAt = Number.NEGATIVE_INFINITY;
  const askedAt = { age: Number.NEGATIVE_INFINITY, search: Number.NEGATIVE_INFINITY };
  let trouble: unknown = null;
  let pending: Promise<void> | null = null;

  const fetchOnce = async (): Promise<void> => {
    try {
      keys = await fetchKeys(uri, outbound);
      fetchedAt = clock.elapsed();
      trouble = null;
    } catch (error) {
      // The last known keys stay valid.
      trouble = error;
    } finally {
      pending = null;
    }
  };
  const refresh = async (why: keyof typeof askedAt): Promise<void> => {
    if (pending === null && clock.elapsed() - askedAt[why] >= PAUSE_MS) {
      askedAt[why] = clock.elapsed();
      pending = fetchOnce();
    }
    await pending;
  };

  return async (header, token) => {
    if (clock.elapsed() - fetchedAt >= KEPT_MS) await refresh("age");
    if (keys === null) throw trouble;
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    await refresh("search");
    try {
      return await keys(header, token);
    } catch (error) {
      throw trouble ?? error;
    }
  };
};

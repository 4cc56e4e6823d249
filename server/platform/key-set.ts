// The published keys of an identity provider: fetched when they are needed, at most once in 30 seconds, within bounds of size and time.
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { type Clock, systemClock } from "../core/clock.ts";

/** The provider's keys cannot be had. Whether the token is good remains unknown. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

// A key that the provider withdraws is refused here after this long.
const KEPT_MS = 600_000;
// Whatever the last answer was: unknown keys in tokens must not become load for the provider.
const PAUSE_MS = 30_000;
const TIMEOUT_MS = 5_000;
// Providers publish some ten kilobytes.
const MAX_BYTES = 262_144;

const readBounded = async (response: Response): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new KeysUnavailable(`the key set is larger than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
};

/** A redirect is refused: where the keys lie is the operator's word, OIDC_JWKS_URI. */
const fetchKeys = async (uri: string): Promise<JWTVerifyGetKey> => {
  try {
    const response = await fetch(uri, { redirect: "manual", signal: AbortSignal.timeout(TIMEOUT_MS), headers: { accept: "application/json" } });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new KeysUnavailable(`the key set answers ${response.status} instead of 200`);
    }
    return createLocalJWKSet(JSON.parse(await readBounded(response)) as JSONWebKeySet); // as: it is checked there
  } catch (error) {
    throw error instanceof KeysUnavailable ? error : new KeysUnavailable("the key set cannot be fetched", { cause: error });
  }
};

/** Rejects with KeysUnavailable when the key may exist and the provider cannot say so; with JOSE's own error when there is no such key. */
export const createKeySet = (uri: string, clock: Pick<Clock, "elapsed"> = systemClock): JWTVerifyGetKey => {
  let keys: JWTVerifyGetKey | null = null;
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let triedAt = Number.NEGATIVE_INFINITY;
  let trouble: unknown = null;
  let pending: Promise<void> | null = null;

  const fetchOnce = async (): Promise<void> => {
    triedAt = clock.elapsed();
    try {
      keys = await fetchKeys(uri);
      fetchedAt = clock.elapsed();
      trouble = null;
    } catch (error) {
      // The keys that it gave last stay good.
      trouble = error;
    } finally {
      pending = null;
    }
  };
  const refresh = async (): Promise<void> => {
    if (pending === null && clock.elapsed() - triedAt >= PAUSE_MS) pending = fetchOnce();
    await pending;
  };

  return async (header, token) => {
    if (clock.elapsed() - fetchedAt >= KEPT_MS) await refresh();
    if (keys === null) throw trouble;
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    await refresh();
    try {
      return await keys(header, token);
    } catch (error) {
      throw trouble ?? error;
    }
  };
};

// Pairs the demo's machines like install scripts do, with one enrollment token.
import { z } from "zod";
import { createHttp, hasSucceeded, type PairedDevice, pairDevice, refusal } from "../agent/index.ts";
import type { Bootstrapped } from "../bootstrap.ts";
import { authOf, type TenantCredentials } from "../fleet/portal.ts";
import type { CastMember } from "./cast.ts";

const PAIRED_AT_ONCE = 5;
const TOKEN_SECONDS = 3_600;
const Created = z.object({ data: z.object({ token: z.string() }) });

/** A token that may pair machines again: an earlier run may have used the same fingerprints. */
const createRepairToken = async (url: string, credentials: TenantCredentials): Promise<string> => {
  const http = createHttp(url, 1);
  try {
    const answer = await http.call({
      method: "POST",
      path: "/v1/pairing/enrollment-tokens",
      headers: authOf(credentials),
      body: JSON.stringify({ name: "demo", expiresInSeconds: TOKEN_SECONDS, maxUses: null, allowRepair: true }),
    });
    if (!hasSucceeded(answer)) throw refusal("the gateway refused an enrollment token", answer);
    return Created.parse(answer.body).data.token;
  } finally {
    http.close();
  }
};

/** In the order of the cast; fewer when the signal aborts. */
export const pairCast = async (
  { baseUrl: url, apiKey, tenantId }: Bootstrapped,
  cast: readonly CastMember[],
  signal: AbortSignal,
): Promise<readonly PairedDevice[]> => {
  const enrollmentToken = await createRepairToken(url, { apiKey, tenantId });
  const paired: PairedDevice[] = [];
  while (paired.length < cast.length && !signal.aborted) {
    const next = cast.slice(paired.length, paired.length + PAIRED_AT_ONCE);
    const pairing = next.map(({ fingerprint, machine: { name, platform } }) => pairDevice({ url, enrollmentToken, fingerprint, name, platform }));
    paired.push(...(await Promise.all(pairing)));
  }
  return paired;
};

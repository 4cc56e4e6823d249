// Pairs one device like an install script: requests a code and activates it with an enrollment token.
import { z } from "zod";
import { errorOf, type HttpAnswer, hasSucceeded, refusal } from "./answers.ts";
import { callWithRetry, createHttp, type RetryOptions } from "./http.ts";
import { IssuedIdentity, type PairedDevice, toPairedDevice } from "./state/identity.ts";
import { createRandom } from "./timing/random.ts";
import { systemTime } from "./timing/time.ts";

export interface PairOptions {
  readonly url: string;
  readonly enrollmentToken: string;
  readonly fingerprint: string;
  readonly name?: string;
  readonly platform?: string;
  /** Total time, including waits for rate limits; default 10 minutes. */
  readonly withinMs?: number;
  readonly signal?: AbortSignal;
  /** Called before each retry. */
  readonly onRetry?: (why: string) => void;
}

const WITHIN_MS = 600_000;
/** An attempt whose response was lost may have used up the code; then the next round requests a new one. */
const ROUNDS = 3;
const STALE_CODES: readonly string[] = ["PAIRING_ALREADY_ACTIVATED", "PAIRING_CODE_EXPIRED", "PAIRING_CODE_NOT_FOUND"];

const Initiated = z.object({ data: z.object({ pairing_code: z.string() }) });
const Activated = z.object({ data: IssuedIdentity });

/** Resolves to the identity as the gateway issued it. */
export const enrollDevice = async ({
  url,
  enrollmentToken,
  fingerprint,
  name,
  platform = "simulator",
  withinMs = WITHIN_MS,
  signal,
  onRetry,
}: PairOptions): Promise<z.infer<typeof IssuedIdentity>> => {
  const http = createHttp(url, 1);
  const retry: RetryOptions = {
    time: systemTime,
    random: createRandom(systemTime.wallMs()),
    untilMs: systemTime.elapsedMs() + withinMs,
    signal,
    ...(onRetry ? { onRetry } : {}),
  };
  const post = (path: string, body: unknown): Promise<HttpAnswer> =>
    callWithRetry(() => http.call({ method: "POST", path, body: JSON.stringify(body) }), retry);
  const round = async (): Promise<HttpAnswer> => {
    const initiated = await post("/v1/pairing/initiate", { device_fingerprint: fingerprint, platform, ...(name === undefined ? {} : { device_name: name }) });
    if (!hasSucceeded(initiated)) throw refusal("the gateway refused a pairing code", initiated);
    return post("/v1/pairing/auto-activate", { enrollment_token: enrollmentToken, pairing_code: Initiated.parse(initiated.body).data.pairing_code });
  };
  try {
    let answer = await round();
    for (let n = 1; n < ROUNDS && STALE_CODES.includes(errorOf(answer).code); n += 1) answer = await round();
    if (!hasSucceeded(answer)) throw refusal("pairing was refused", answer);
    return Activated.parse(answer.body).data;
  } finally {
    http.close();
  }
};

export const pairDevice = async (options: PairOptions): Promise<PairedDevice> => toPairedDevice(await enrollDevice(options));

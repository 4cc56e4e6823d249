// Pairs one device like an install script: requests a code and activates it with an enrollment token, or waits if the token needs a person's approval.
import { z } from "zod";
import { errorOf, type HttpAnswer, hasSucceeded, refusal } from "./answers.ts";
import { awaitDecision, Initiated, type ShownCode, toShown } from "./approval.ts";
import { callWithRetry, createHttp, type RetryOptions } from "./http.ts";
import { IssuedIdentity, type PairedDevice, toPairedDevice } from "./state/identity.ts";
import { createRandom } from "./timing/random.ts";
import { systemTime, type Time } from "./timing/time.ts";

export interface PairOptions {
  readonly url: string;
  readonly enrollmentToken: string;
  readonly fingerprint: string;
  readonly name?: string;
  readonly platform?: string;
  /** Total time, including waits for rate limits and without those for people; default 10 minutes. */
  readonly withinMs?: number;
  readonly signal?: AbortSignal;
  readonly time?: Time;
  /** The token needs a person's approval: shows the code, and the digits to compare. */
  readonly onCode?: (shown: ShownCode) => void;
  /** Called before each retry. */
  readonly onRetry?: (why: string) => void;
}

const WITHIN_MS = 600_000;
/** An attempt whose response was lost may have used up the code; then the next round requests a new one. */
const ROUNDS = 3;
const STALE_CODES: readonly string[] = ["PAIRING_ALREADY_ACTIVATED", "PAIRING_CODE_EXPIRED", "PAIRING_CODE_NOT_FOUND"];

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
  time = systemTime,
  onCode,
  onRetry,
}: PairOptions): Promise<z.infer<typeof IssuedIdentity>> => {
  const http = createHttp(url, 1);
  const retry: RetryOptions = {
    time,
    random: createRandom(time.wallMs()),
    untilMs: time.elapsedMs() + withinMs,
    signal,
    ...(onRetry ? { onRetry } : {}),
  };
  const post = (path: string, body: unknown): Promise<HttpAnswer> =>
    callWithRetry(() => http.call({ method: "POST", path, body: JSON.stringify(body) }), retry);
  try {
    for (let round = 1; ; round += 1) {
      const initiated = await post("/v1/pairing/initiate", { device_fingerprint: fingerprint, platform, ...(name === undefined ? {} : { device_name: name }) });
      if (!hasSucceeded(initiated)) throw refusal("the gateway refused a pairing code", initiated);
      const requested = Initiated.parse(initiated.body).data;
      const answer = await post("/v1/pairing/auto-activate", { enrollment_token: enrollmentToken, pairing_code: requested.pairing_code });
      if (hasSucceeded(answer)) return Activated.parse(answer.body).data;
      const { code } = errorOf(answer);
      if (code === "PAIRING_APPROVAL_REQUIRED") {
        onCode?.(toShown(requested));
        const decided = await awaitDecision(http, { ...retry, requested, fingerprint });
        if (decided.identity !== undefined) return decided.identity;
        if (decided.status !== "expired" || round === ROUNDS) throw refusal(`the pairing ended as ${decided.status}`, decided.answer);
      } else if (round === ROUNDS || !STALE_CODES.includes(code)) throw refusal("pairing was refused", answer);
    }
  } finally {
    http.close();
  }
};

export const pairDevice = async (options: PairOptions): Promise<PairedDevice> => toPairedDevice(await enrollDevice(options));

// Pairs one device as an install script does: ask for a code, activate it with an enrollment token, keep the identity.
import { z } from "zod";
import { createHttp, errorOf, type HttpAnswer, type Patience, persist, refusal } from "./http.ts";
import { Identity, type Member, toMember } from "./identity.ts";
import { createRandom } from "./random.ts";
import { systemTime } from "./time.ts";

export interface PairOptions {
  readonly url: string;
  readonly enrollmentToken: string;
  readonly fingerprint: string;
  readonly name?: string;
  readonly platform?: string;
  /** Rate limits are waited out within it; default 10 minutes. */
  readonly withinMs?: number;
  readonly signal?: AbortSignal;
  /** Told each time the gateway asks to wait or cannot be reached. */
  readonly onRetry?: (why: string) => void;
}

const WITHIN_MS = 600_000;
/** A code may be used up by an attempt whose answer was lost; then a new code is asked for. */
const ROUNDS = 3;
const STALE_CODES: readonly string[] = ["PAIRING_ALREADY_ACTIVATED", "PAIRING_CODE_EXPIRED", "PAIRING_CODE_NOT_FOUND"];

const Initiated = z.object({ data: z.object({ pairing_code: z.string() }) });
const Activated = z.object({ data: Identity });

export const pairDevice = async ({
  url,
  enrollmentToken,
  fingerprint,
  name,
  platform = "simulator",
  withinMs = WITHIN_MS,
  signal,
  onRetry,
}: PairOptions): Promise<Member> => {
  const http = createHttp(url, 1);
  const patience: Patience = {
    time: systemTime,
    random: createRandom(systemTime.wallMs()),
    untilMs: systemTime.elapsedMs() + withinMs,
    signal,
    ...(onRetry ? { onRetry } : {}),
  };
  const post = (path: string, body: unknown): Promise<HttpAnswer> => persist(() => http.call({ method: "POST", path, body: JSON.stringify(body) }), patience);
  const round = async (): Promise<HttpAnswer> => {
    const initiated = await post("/v1/pairing/initiate", { device_fingerprint: fingerprint, platform, ...(name === undefined ? {} : { device_name: name }) });
    if (initiated.status !== 201) throw refusal("pairing could not begin", initiated);
    return post("/v1/pairing/auto-activate", { enrollment_token: enrollmentToken, pairing_code: Initiated.parse(initiated.body).data.pairing_code });
  };
  try {
    let answer = await round();
    for (let n = 1; n < ROUNDS && STALE_CODES.includes(errorOf(answer).code); n += 1) answer = await round();
    if (answer.status !== 201) throw refusal("pairing was refused", answer);
    return toMember(Activated.parse(answer.body).data);
  } finally {
    http.close();
  }
};

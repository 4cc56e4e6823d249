// Pairs one device with a person's approval: requests a code, shows it, and polls until the person has decided.
import { z } from "zod";
import { givenWaitMs, type HttpAnswer, hasSucceeded, refusal } from "./answers.ts";
import { callWithRetry, createHttp, type RetryOptions } from "./http.ts";
import { IssuedIdentity } from "./state/identity.ts";
import { between, createRandom } from "./timing/random.ts";
import { pause, type Time } from "./timing/time.ts";

export interface ShownCode {
  readonly code: string;
  readonly comparison: string;
  readonly portalUrl: string;
}

export interface ApprovalOptions {
  readonly url: string;
  readonly fingerprint: string;
  readonly name?: string;
  readonly platform?: string;
  readonly time: Time;
  /** Shows the person the code, and the digits to compare. */
  readonly onCode: (shown: ShownCode) => void;
  readonly signal?: AbortSignal;
  /** Called before each retry. */
  readonly onRetry?: (why: string) => void;
}

const WITHIN_MS = 900_000;
const POLL_MS = 6_000;
const LEAST_POLL_MS = 1_000;
const Requested = z.object({ pairing_code: z.string(), portal_url: z.string().catch(""), pollToken: z.string().catch(""), comparison: z.string().catch("") });
export const Initiated = z.object({ data: Requested });
const Polled = z.object({
  data: z.object({ status: z.string(), pollAfterSeconds: z.unknown(), identity: IssuedIdentity.optional() }),
});

export const toShown = ({ pairing_code: code, comparison, portal_url: portalUrl }: z.infer<typeof Requested>): ShownCode => ({ code, comparison, portalUrl });

interface Waiting extends Omit<RetryOptions, "untilMs"> {
  readonly requested: z.infer<typeof Requested>;
  readonly fingerprint: string;
}
export interface ApprovalOutcome {
  readonly identity: z.infer<typeof IssuedIdentity> | undefined;
  readonly status: string;
  readonly answer: HttpAnswer;
}
/** Polls until the person has decided, or the code has expired. */
export const awaitDecision = async (http: ReturnType<typeof createHttp>, { requested, fingerprint, ...options }: Waiting): Promise<ApprovalOutcome> => {
  const { time, random, signal } = options;
  const body = JSON.stringify({ pairing_code: requested.pairing_code, device_fingerprint: fingerprint, pollToken: requested.pollToken });
  const retry = { ...options, untilMs: time.elapsedMs() + WITHIN_MS };
  for (;;) {
    const answer = await callWithRetry(() => http.call({ method: "POST", path: "/v1/pairing/collect", body }), retry);
    const { identity, status, pollAfterSeconds } = hasSucceeded(answer) ? Polled.parse(answer.body).data : { status: "unknown" };
    if (identity !== undefined || status !== "pending" || signal?.aborted) return { identity, status, answer };
    const waitMs = Math.max(LEAST_POLL_MS, givenWaitMs(pollAfterSeconds) ?? POLL_MS);
    await pause(time, waitMs * between(random, 1, 1.1), signal);
  }
};

/** Resolves to the identity; rejects when the person rejects the device or the code expires. */
export const pairByApproval = async ({
  url,
  fingerprint,
  name,
  platform = "simulator",
  time,
  onCode,
  signal,
  onRetry,
}: ApprovalOptions): Promise<z.infer<typeof IssuedIdentity>> => {
  const http = createHttp(url, 1);
  const retry = {
    time,
    random: createRandom(time.wallMs()),
    untilMs: time.elapsedMs() + WITHIN_MS,
    signal,
    ...(onRetry ? { onRetry } : {}),
  };
  try {
    const body = JSON.stringify({ device_fingerprint: fingerprint, platform, ...(name === undefined ? {} : { device_name: name }) });
    const initiated = await callWithRetry(() => http.call({ method: "POST", path: "/v1/pairing/initiate", body }), retry);
    if (!hasSucceeded(initiated)) throw refusal("the gateway refused a pairing code", initiated);
    const requested = Initiated.parse(initiated.body).data;
    onCode(toShown(requested));
    const { identity, status, answer } = await awaitDecision(http, { ...retry, requested, fingerprint });
    if (identity === undefined) throw refusal(`the pairing ended as ${status}`, answer);
    return identity;
  } finally {
    http.close();
  }
};

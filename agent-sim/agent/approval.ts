// Pairs one device with a person's approval: requests a code, shows it, and polls until the person has decided.
import { z } from "zod";
import { givenWaitMs, type HttpAnswer, hasSucceeded, refusal } from "./answers.ts";
import { callWithRetry, createHttp } from "./http.ts";
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
const Initiated = z.object({ data: z.object({ pairing_code: z.string(), portal_url: z.string(), pollToken: z.string(), comparison: z.string().catch("") }) });
const Polled = z.object({
  data: z.object({ status: z.string(), pollAfterSeconds: z.unknown(), identity: IssuedIdentity.optional() }),
});

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
  const post = (path: string, body: unknown): Promise<HttpAnswer> =>
    callWithRetry(() => http.call({ method: "POST", path, body: JSON.stringify(body) }), retry);
  try {
    const initiated = await post("/v1/pairing/initiate", {
      device_fingerprint: fingerprint,
      platform,
      ...(name === undefined ? {} : { device_name: name }),
    });
    if (!hasSucceeded(initiated)) throw refusal("the gateway refused a pairing code", initiated);
    const { pairing_code, portal_url, pollToken, comparison } = Initiated.parse(initiated.body).data;
    onCode({ code: pairing_code, comparison, portalUrl: portal_url });
    for (;;) {
      const answer = await post("/v1/pairing/collect", { pairing_code, device_fingerprint: fingerprint, pollToken });
      const polled = hasSucceeded(answer) ? Polled.parse(answer.body).data : null;
      if (polled?.identity !== undefined) return polled.identity;
      if (polled?.status !== "pending" || signal?.aborted) throw refusal(`the pairing ended as ${polled?.status ?? "unknown"}`, answer);
      const waitMs = Math.max(LEAST_POLL_MS, givenWaitMs(polled.pollAfterSeconds) ?? POLL_MS);
      await pause(time, waitMs * between(retry.random, 1, 1.1), signal);
    }
  } finally {
    http.close();
  }
};

// Rotates the agent's secret: fetches the new one with a signature of the old one, stores it durably beside the old one, then uses it once.
// A crash at any point leaves both sides with a common secret: the old one is valid until the new one is first used, and the agent has both.
import { z } from "zod";
import type { AgentIdentity } from "../../protocol/index.ts";
import { type HttpAnswer, hasSucceeded, refusal, refusesSecret } from "./answers.ts";
import type { CommandHandler } from "./handlers.ts";
import { callWithRetry, type Http, type RetryOptions } from "./http.ts";
import type { Sign } from "./signing.ts";
import type { Keys } from "./state/keys.ts";
import { jittered, type Random } from "./timing/random.ts";
import { noop, type Time } from "./timing/time.ts";

const WITHIN_MS = 60_000;
const AGAIN_MS = 60_000;
const JITTER_PCT = 50;

export interface RotationDeps {
  readonly keys: Keys;
  readonly http: Http;
  readonly deviceId: string;
  readonly identity: Pick<AgentIdentity, "agentId" | "tenantId">;
  readonly sign: Sign;
  readonly time: Time;
  readonly random: Random;
  /** Timestamp for a signature; never the same twice. */
  readonly stampMs: () => number;
}

export interface Rotation {
  readonly handler: CommandHandler;
  /** Continues a rotation that an earlier run left unfinished. Returns a function that stops it. */
  resume(): () => void;
}

const Secrets = z.object({ data: z.object({ secrets: z.object({ DEVICE_TOKEN: z.string().min(1) }) }) });

export const createRotation = ({ keys, http, deviceId, identity, sign, time, random, stampMs }: RotationDeps): Rotation => {
  /** Signs with the current secret; if the gateway refuses it, tries the other one. */
  const ask = async (path: string, signal?: AbortSignal): Promise<HttpAnswer> => {
    const retry: RetryOptions = { time, random, signal, untilMs: time.elapsedMs() + WITHIN_MS };
    for (let tried = 0; ; tried += 1) {
      const { secret } = keys;
      const answer = await callWithRetry(
        () => http.call({ method: "GET", path, headers: sign({ ...identity, secret }, { method: "GET", target: path, body: "" }, new Date(stampMs())) }),
        retry,
      );
      if (hasSucceeded(answer)) keys.confirmed(secret);
      if (!refusesSecret(answer) || !keys.refused(secret) || tried > 0) return answer;
    }
  };

  const rotate = async (signal?: AbortSignal): Promise<{ readonly rotated: boolean }> => {
    keys.begin();
    const answer = await ask(`/v1/devices/${encodeURIComponent(deviceId)}/secrets`, signal);
    const fetched = Secrets.safeParse(answer.body).data?.data.secrets.DEVICE_TOKEN;
    if (!hasSucceeded(answer) || fetched === undefined) throw refusal("cannot fetch the new secret", answer);
    keys.offer(fetched);
    const used = await ask("/v1/agent/me", signal);
    if (!hasSucceeded(used)) throw refusal("cannot use the new secret", used);
    return { rotated: keys.secret === fetched };
  };

  return {
    handler: { long: false, cancelable: false, run: (_payload, { signal }) => rotate(signal) },
    resume: () => {
      if (!keys.rotating) return noop;
      let cancel = noop;
      const stop = new AbortController();
      const attempt = (): void =>
        void rotate(stop.signal).catch((error: unknown) => {
          if (!(error instanceof Error)) throw error;
          if (!stop.signal.aborted) cancel = time.after(jittered(random, AGAIN_MS, JITTER_PCT), attempt);
        });
      attempt();
      return () => {
        stop.abort();
        cancel();
      };
    },
  };
};

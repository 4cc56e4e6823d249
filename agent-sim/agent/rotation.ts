// A secret rotation as the agent does it: fetch the new secret signed with the old one, keep it durably beside the old one, then use it once.
// Wherever this breaks off, both sides still share a secret: until the first use the old one is good, from then on the new one, and the agent has both.
import { z } from "zod";
import type { AgentIdentity } from "../../protocol/index.ts";
import type { Handler } from "./handlers.ts";
import { errorOf, type Http, type HttpAnswer, NoAnswer, type Patience, persist } from "./http.ts";
import type { Keys } from "./keys.ts";
import type { Random } from "./random.ts";
import type { Sign } from "./signing.ts";
import { nothing, type Time } from "./time.ts";

const WITHIN_MS = 60_000;
const AGAIN_MS = 60_000;

export interface RotationDeps {
  readonly keys: Keys;
  readonly http: Http;
  readonly deviceId: string;
  readonly identity: Pick<AgentIdentity, "agentId" | "tenantId">;
  readonly sign: Sign;
  readonly time: Time;
  readonly random: Random;
  /** The time to sign with; never the same twice. */
  readonly stampMs: () => number;
}

export interface Rotation {
  readonly handler: Handler;
  /** Takes up what an earlier run left unfinished; returns how to stop. */
  resume(): () => void;
}

const Secrets = z.object({ data: z.object({ secrets: z.object({ DEVICE_TOKEN: z.string().min(1) }) }) });

const wasRefused = (answer: HttpAnswer): boolean => answer.status === 401 && errorOf(answer).details["reason"] === "bad_signature";

export const createRotation = ({ keys, http, deviceId, identity, sign, time, random, stampMs }: RotationDeps): Rotation => {
  /** With whichever secret is in use; a refused one is put aside for the other. */
  const ask = async (path: string, signal?: AbortSignal): Promise<HttpAnswer> => {
    const patience: Patience = { time, random, signal, untilMs: time.elapsedMs() + WITHIN_MS };
    for (let tried = 0; ; tried += 1) {
      const { secret } = keys;
      const answer = await persist(
        () => http.call({ method: "GET", path, headers: sign({ ...identity, secret }, { method: "GET", target: path, body: "" }, new Date(stampMs())) }),
        patience,
      );
      if (answer.status === 200) keys.confirmed(secret);
      if (!wasRefused(answer) || !keys.refused(secret) || tried > 0) return answer;
    }
  };

  const rotate = async (signal?: AbortSignal): Promise<{ readonly rotated: boolean }> => {
    keys.begin();
    const answer = await ask(`/v1/devices/${encodeURIComponent(deviceId)}/secrets`, signal);
    const fetched = Secrets.safeParse(answer.body).data?.data.secrets.DEVICE_TOKEN;
    if (answer.status !== 200 || fetched === undefined) throw new Error(`the new secret could not be fetched: ${answer.status}`);
    keys.offer(fetched);
    const used = await ask("/v1/agent/me", signal);
    if (used.status !== 200) throw new Error(`the new secret could not be used: ${used.status}`);
    return { rotated: keys.secret === fetched };
  };

  return {
    handler: { long: false, cancelable: false, run: (_payload, { signal }) => rotate(signal) },
    resume: () => {
      if (!keys.rotating) return nothing;
      let cancel = nothing;
      const stop = new AbortController();
      const attempt = (): void =>
        void rotate(stop.signal).catch((error: unknown) => {
          if (!(error instanceof NoAnswer) && !(error instanceof Error)) throw error;
          if (!stop.signal.aborted) cancel = time.after(AGAIN_MS, attempt);
        });
      attempt();
      return () => {
        stop.abort();
        cancel();
      };
    },
  };
};

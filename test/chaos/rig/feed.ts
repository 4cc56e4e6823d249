// A viewer of the tenant's live events over server-sent events that resumes from its position after each break.
import http from "node:http";
import { z } from "zod";
import { pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import type { TenantCredentials } from "../../../agent-sim/fleet/portal.ts";
import { headersOf } from "./calls.ts";

const AGAIN_MS = 200;
const SILENCE_MS = 15_000;

const Event = z.object({ id: z.string(), type: z.string(), subjectId: z.string(), data: z.record(z.string(), z.unknown()) });
export type FeedEvent = z.infer<typeof Event> & { readonly seenAtMs: number };
/** A tracked value arrives as an object with its id, or alone. */
const Message = z.union([Event, z.object({ json: Event }).transform(({ json }) => json)]);

export interface Feed {
  readonly events: readonly FeedEvent[];
  /** Streams opened. */
  readonly visits: number;
  stop(): Promise<void>;
}

export interface FeedOptions {
  readonly port: number;
  readonly credentials: TenantCredentials;
  readonly types: readonly string[];
  /** An event before all others, so that even the first visit misses none. */
  readonly after: string;
}

export const watchFeed = ({ port, credentials, types, after }: FeedOptions): Feed => {
  const events: FeedEvent[] = [];
  const state: { visits: number; over: boolean; request: http.ClientRequest | null } = { visits: 0, over: false, request: null };
  const take = (block: string): void => {
    const lines = block.split("\n");
    const data = lines.flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : [])).join("\n");
    if (data === "" || lines.some((line) => line.startsWith("event: "))) return;
    const message = Message.safeParse(JSON.parse(data));
    // The stream's own messages are not events of the tenant.
    if (message.success && !message.data.type.startsWith("stream.")) events.push({ ...message.data, seenAtMs: time.elapsedMs() });
  };
  /** Resolves when the stream ends, for whatever reason. */
  const visit = (): Promise<void> =>
    new Promise((resolve) => {
      state.visits += 1;
      const input = encodeURIComponent(JSON.stringify({ types, lastEventId: events.at(-1)?.id ?? after }));
      const request = http.get(
        { host: "127.0.0.1", port, path: `/trpc/live.watch?input=${input}`, headers: { ...headersOf(credentials), accept: "text/event-stream" } },
        (response) => {
          let rest = "";
          response.setEncoding("utf8").on("data", (text: string) => {
            const blocks = (rest + text).split("\n\n");
            rest = blocks.pop() ?? "";
            blocks.forEach(take);
          });
          response.on("close", () => resolve());
        },
      );
      request.setTimeout(SILENCE_MS, () => request.destroy());
      request.on("error", () => resolve());
      state.request = request;
    });
  const run = async (): Promise<void> => {
    while (!state.over) {
      await visit();
      if (!state.over) await pause(time, AGAIN_MS);
    }
  };
  const running = run();
  return {
    events,
    get visits() {
      return state.visits;
    },
    stop: () => {
      state.over = true;
      state.request?.destroy();
      return running;
    },
  };
};

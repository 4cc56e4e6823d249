// The logs of apps as an agent sends them, for the tests of what the console shows of them.
import { expect } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import type { Device, World } from "../../kit/gateway/world.ts";

export interface Line {
  readonly at: string;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}
let written = 0;
export const line = (text: string, stream: Line["stream"] = "stdout"): Line => {
  written += 1;
  return { at: new Date(Date.UTC(2026, 10, 23, 5, 0, 0, written)).toISOString(), stream, text };
};

/** An agent that sends `tail` as the end of each log, and what `write` is given as soon as somebody follows. */
export const createLogger = (world: World, tail: readonly Line[]) => {
  let followed: string | null = null;
  let n = 0;
  /** Returns whether somebody waits for it. */
  let send = async (_head: object, _lines: readonly Line[]): Promise<boolean> => false;
  const handlers = (device: Device) => {
    send = async (head, lines) => {
      const rawBody = [head, ...lines].map((each) => JSON.stringify(each)).join("\n");
      const answer = await world.call(device.as, "POST", "/v1/agent/logs", { rawBody, headers: { "content-type": "application/x-ndjson" } });
      expect(answer.status).toBe(200);
      return answer.body.data.watched;
    };
    const same = { long: false, cancelable: false };
    return {
      "app.logs": {
        ...same,
        run: async (payload: unknown) => {
          const { followId } = payload as { followId: string }; // as: the contract says what is in it
          await send({ followId, n: 1, done: true }, tail);
          return { lines: tail.length };
        },
      },
      "app.logs.follow": {
        ...same,
        run: async (payload: unknown) => {
          const { followId } = payload as { followId: string }; // as: the contract says what is in it
          if (followId !== followed) n = 0;
          followed = followId;
          return { until: new Date(Date.now() + 60_000).toISOString() };
        },
      },
    };
  };
  const write = (...lines: readonly Line[]): Promise<void> =>
    eventually(async () => {
      n += 1;
      if (followed === null || !(await send({ followId: followed, n }, lines))) throw new Error("nobody follows the log");
    });
  return { handlers, write };
};

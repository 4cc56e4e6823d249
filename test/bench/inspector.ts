// The inspector of a running gateway, opened by signal as an operator would open it. The process must run with a free inspector port.
import { WebSocket } from "ws";
import { z } from "zod";
import { waitUntil } from "./gateway.ts";

const WITHIN_MS = 10_000;
/** A profile of a long run is large. */
const MAX_ANSWER_BYTES = 512 * 2 ** 20;

const Answer = z.object({ id: z.number().optional(), result: z.unknown(), error: z.unknown().optional() });

export interface Inspector {
  call(method: string, params?: object): Promise<unknown>;
  close(): void;
}

export const openInspector = async ({ pid, said }: { readonly pid: number; said(): string }): Promise<Inspector> => {
  const address = (): string | undefined => /listening on (ws:\S+)/.exec(said())?.[1];
  if (address() === undefined) process.kill(pid, "SIGUSR1");
  const socket = new WebSocket(await waitUntil(address, { withinMs: WITHIN_MS, said }), { maxPayload: MAX_ANSWER_BYTES });
  await new Promise((resolve, reject) => void socket.once("open", resolve).once("error", reject));
  const waiting = new Map<number, { readonly resolve: (result: unknown) => void; readonly reject: (error: Error) => void }>();
  socket.on("message", (bytes) => {
    const { id = 0, result, error } = Answer.parse(JSON.parse(String(bytes)));
    if (error === undefined) waiting.get(id)?.resolve(result);
    else waiting.get(id)?.reject(new Error(`the inspector answered ${JSON.stringify(error)}`));
    waiting.delete(id);
  });
  let calls = 0;
  return {
    call: (method, params = {}) =>
      new Promise((resolve, reject) => {
        calls += 1;
        waiting.set(calls, { resolve, reject });
        socket.send(JSON.stringify({ id: calls, method, params }));
      }),
    close: () => socket.terminate(),
  };
};

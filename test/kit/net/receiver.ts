// A receiver of webhooks on the address that tests may reach; it keeps what it got and answers as the test wants.
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { listenApart } from "./free-port.ts";

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly at: number;
}
export type Respond = (received: Received, response: ServerResponse) => void;

export const RECEIVER_HOST = "127.0.0.2";
const ok: Respond = (_, response) => void response.writeHead(200).end("ok");

export const startReceiver = async (respond: Respond = ok) => {
  const received: Received[] = [];
  let current = respond;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const one = { path: request.url ?? "", headers: request.headers, body: Buffer.concat(parts).toString(), at: performance.now() };
      received.push(one);
      current(one, response);
    });
  });
  const port = await listenApart(server, RECEIVER_HOST);
  return {
    received,
    url: (path = "/"): string => `http://${RECEIVER_HOST}:${port}${path}`,
    at: (path: string): readonly Received[] => received.filter((one) => one.path === path),
    /** Without an argument, as at its start. */
    respond: (next = respond): void => {
      current = next;
    },
    close: async (): Promise<void> => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};
export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Respond =>
  (_, response) =>
    void response.writeHead(code, headers).end(`status ${code}`);

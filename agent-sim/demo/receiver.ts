// Receives the demo's webhooks on this machine: one path takes what comes, another is out of order, so that the log of deliveries has something to tell.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export const TAKES = "/inventory";
export const REFUSES = "/old-ticket-system";

export interface Receiver {
  readonly url: string;
  close(): void;
}

export const openReceiver = async (): Promise<Receiver> => {
  const server = createServer((request, response) => {
    request.resume();
    const isTaken = request.url === TAKES;
    response.writeHead(isTaken ? 204 : 503, isTaken ? {} : { "content-type": "text/plain" });
    response.end(isTaken ? undefined : "the ticket system is being moved\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // as: it listens on a port
  server.unref();
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
};

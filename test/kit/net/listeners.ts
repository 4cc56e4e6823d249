// Listeners on loopback that count their connections: receivers that tests allow, and decoys that nobody may reach.
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { listenApart } from "./free-port.ts";

export interface CountingListener {
  readonly host: string;
  readonly port: number;
  /** Connections so far. */
  readonly connections: () => number;
  /** Connections that are open. */
  readonly open: () => number;
  close(): Promise<void>;
}

/** `serve` gets each connection; without it, it answers every request with an empty 200. */
export const startListener = async (host: string, serve: (socket: Socket) => void = answerOk, port?: number): Promise<CountingListener> => {
  let connections = 0;
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    serve(socket);
    // Otherwise one who reads nothing never learns that the peer has closed.
    socket.resume();
  });
  if (port !== undefined) {
    server.listen(port, host);
    await once(server, "listening");
  }
  return {
    host,
    port: port ?? (await listenApart(server, host)),
    connections: () => connections,
    open: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
};

export const answerOk = (socket: Socket): void => {
  socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
};

// Begins HTTP/2 as a server on a connection that is open already.
import * as http2 from "node:http2";
import type { Duplex } from "node:stream";

/** For a Node before 20.12, such as the newest that npm carries for 32-bit ARM: a server without a listener gets the connection. */
export const beginAsServer = (connection: Duplex, options: http2.ServerOptions): http2.ServerHttp2Session => {
  const server = http2.createServer(options);
  let begun: http2.ServerHttp2Session | null = null;
  server.once("session", (session) => {
    begun = session;
  });
  server.emit("connection", connection);
  if (begun === null) throw new Error("this version of Node cannot serve a carrier");
  return begun;
};

export const beginHttp2: typeof beginAsServer = (http2 as Partial<typeof http2>).performServerHandshake ?? beginAsServer;

// Lends an upgrade the cork of another connection (socket.ts says why): our own over loopback, which nobody answers.
import type { TemplatedApp } from "uWebSockets.js";
import { connect } from "node:net";
import { newSecret } from "../../core/ids.ts";
import { uws } from "./load.ts";

const LOOPBACK = "127.0.0.1";

let writes: (() => void)[] = [];
const writeAll = (): void => {
  const now = writes;
  writes = [];
  for (const write of now) write();
};

/** The path of our own connection, a secret: no stranger who finds the port passes for it. */
let path = "";
// One for all: the library never frees an app.
let shared: TemplatedApp | null = null;
const openApp = (): TemplatedApp =>
  uws.App().any("/*", (res, req) => {
    // The library corks a connection while its handler runs.
    if (req.getUrl() === path) writeAll();
    res.close();
  });

/** Runs `write` soon, while a connection of our own is corked; without loopback it runs uncorked. */
export const corkedElsewhere = (write: () => void): void => {
  if (writes.push(write) > 1) return;
  shared ??= openApp();
  shared.listen(LOOPBACK, 0, (listening) => {
    if (listening === false) {
      writeAll();
      return;
    }
    path = `/${newSecret()}`;
    const client = connect(uws.us_socket_local_port(listening), LOOPBACK, () => client.write(`GET ${path} HTTP/1.1\r\nHost: ${LOOPBACK}\r\n\r\n`));
    client
      .on("error", () => undefined)
      .on("close", () => {
        uws.us_listen_socket_close(listening);
        // Writes are left only if the connection failed.
        writeAll();
      });
  });
};

// Another connection to cork with while an upgrade is written: see socket.ts. It is ours, over loopback, and never answered.
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

/** What our own connection asks for; nobody else who finds the port is taken for it. */
let path = "";
// One for all: the library never frees an app.
let shared: TemplatedApp | null = null;
const openApp = (): TemplatedApp =>
  uws.App().any("/*", (res, req) => {
    // Within its handler a connection is corked.
    if (req.getUrl() === path) writeAll();
    res.close();
  });

/** Soon runs `write` while a connection of our own is corked; where there is no loopback it runs all the same. */
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
        // Nothing is left unless the connection failed.
        writeAll();
      });
  });
};

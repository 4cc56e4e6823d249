// Receives POST requests and answers each with 204, and does nothing else. Frozen; see frozen.json.
import { App, us_socket_local_port } from "uWebSockets.js";

App()
  .post("/*", (res) => {
    res.onAborted(() => undefined);
    res.onData((_part, isLast) => {
      if (isLast) res.cork(() => res.writeStatus("204 No Content").endWithoutBody());
    });
  })
  .listen("127.0.0.2", 0, (socket) => process.stdout.write(`ready at ${us_socket_local_port(socket)}\n`));

// The limit of this runtime: uWebSockets.js says back what it hears, and does nothing else. Frozen; see frozen.json.
import { App, us_socket_local_port } from "uWebSockets.js";

App()
  .ws("/*", {
    compression: 0,
    maxPayloadLength: 262_144,
    idleTimeout: 60,
    sendPingsAutomatically: true,
    message: (ws, message, binary) => ws.send(message, binary, false),
  })
  .listen("127.0.0.1", 0, (socket) => process.stdout.write(`ready at ${us_socket_local_port(socket)}\n`));

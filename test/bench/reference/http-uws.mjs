// Bare HTTP in this runtime: uWebSockets.js answers a constant, and does nothing else. Frozen; see frozen.json.
import { App, us_socket_local_port } from "uWebSockets.js";

const body = JSON.stringify({ alive: true, timestamp: "2026-01-01T00:00:00.000Z", uptime: 123_456 });

App()
  .get("/*", (res) => {
    res.cork(() => res.writeHeader("Content-Type", "application/json").end(body));
  })
  .listen("127.0.0.1", 0, (socket) => process.stdout.write(`ready at ${us_socket_local_port(socket)}\n`));

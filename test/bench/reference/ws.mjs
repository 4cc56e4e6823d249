// A plain `ws` server that says back what it hears. Frozen; see frozen.json.
import { WebSocketServer } from "ws";

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false, backlog: 4_096 }, () =>
  process.stdout.write(`ready at ${server.address().port}\n`),
);
server.on("connection", (socket) => socket.on("message", (message, binary) => socket.send(message, { binary })));

// A plain socket.io server that acknowledges each heartbeat by its number, over WebSocket only. Frozen; see frozen.json.
import { createServer } from "node:http";
import { Server } from "socket.io";

const http = createServer();
const io = new Server(http, { transports: ["websocket"], serveClient: false, perMessageDeflate: false });
io.on("connection", (socket) => socket.on("heartbeat", (beat, acknowledge) => acknowledge({ ref: beat.id })));
http.listen({ host: "127.0.0.1", port: 0, backlog: 4_096 }, () => process.stdout.write(`ready at ${http.address().port}\n`));

// Runs as a separate process for upgrade.test.ts: opens sockets while no other is open, first one by one and then at once.
import { once } from "node:events";
import WebSocket from "ws";
import { startEcho } from "../autobahn/echo.ts";

const echo = await startEcho();
const open = async (): Promise<WebSocket> => {
  const socket = new WebSocket(`ws://127.0.0.1:${echo.at.port}${echo.at.path}`);
  await once(socket, "open");
  socket.send("hello");
  await once(socket, "message");
  return socket;
};
const close = async (socket: WebSocket): Promise<void> => {
  socket.close();
  await once(socket, "close");
};
await close(await open());
await close(await open());
const many = await Promise.all(Array.from({ length: 10 }, open));
await Promise.all(many.map(close));
await echo.close();
process.stdout.write("all were answered");

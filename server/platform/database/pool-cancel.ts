// Cancels the statement that a session runs, over a connection of its own, as the protocol wants it.
import { connect } from "node:net";
import pg from "pg";
import { demandDriver } from "./driver.ts";

const CANCEL_TIMEOUT_MS = 2_000;
const CANCEL_REQUEST = 80_877_102;

export const cancelStatement = (client: pg.ClientBase): void => {
  if (!(client instanceof pg.Client)) throw new TypeError("only a session of this driver can be canceled");
  demandDriver(client);
  const { processID, secretKey, host, port } = client;
  if (processID === null || secretKey === null) return;
  const request = Buffer.alloc(16);
  [16, CANCEL_REQUEST, processID].forEach((word, index) => void request.writeInt32BE(word, index * 4));
  request.writeInt32BE(secretKey, 12);
  const socket = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
  socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy());
  socket.on("error", () => undefined);
  socket.end(request);
};

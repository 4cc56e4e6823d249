// Cancels the statement that a session runs, over a connection of its own, as the protocol wants it.
import { connect } from "node:net";
import type pg from "pg";

const CANCEL_TIMEOUT_MS = 2_000;
const CANCEL_REQUEST = 80_877_102;

export const cancelStatement = (client: pg.PoolClient): void => {
  const { processID, secretKey, host, port } = client as unknown as { processID?: number; secretKey?: number; host: string; port: number };
  if (processID === undefined || typeof secretKey !== "number") return;
  const request = Buffer.alloc(16);
  [16, CANCEL_REQUEST, processID].forEach((word, index) => void request.writeInt32BE(word, index * 4));
  request.writeInt32BE(secretKey, 12);
  const socket = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
  socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy());
  socket.on("error", () => undefined);
  socket.end(request);
};

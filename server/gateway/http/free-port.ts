// Checks that a port is free. Listeners of several workers share one port (SO_REUSEPORT), and would share it with another program too.
import { once } from "node:events";
import { createServer } from "node:net";
import { type ListenAt, ListenError } from "./listen-error.ts";

/** Returns the port, or a free one for 0; throws a `ListenError`. */
export const checkFree = async (at: ListenAt): Promise<number> => {
  const probe = createServer();
  probe.listen({ host: at.host, port: at.port, exclusive: true });
  await once(probe, "listening").catch((error: NodeJS.ErrnoException) => {
    throw new ListenError(at, error.code ?? error.message);
  });
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return address === null || typeof address === "string" ? at.port : address.port;
};

// Whether a port is free: for listeners that share theirs with others of this service, so that nobody else slips in beside them.
import { once } from "node:events";
import { createServer } from "node:net";
import { type ListenAt, ListenError } from "./listen-error.ts";

/** Answers the port, a free one for 0; throws a `ListenError`. */
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

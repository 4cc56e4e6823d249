// An HTTP agent for a library that opens its own connections: it refuses those that lead to this installation's own listeners.
import type { Agent } from "node:http";
import { Socket } from "node:net";
import { OutboundError } from "../../core/ports/outbound.ts";
import { type IsOwn, OWN } from "./address.ts";

/** Judges each connection by the address and port that it reached, before TLS and before the first byte of a request. */
export const createOwnRefusingAgent = async (protocol: string, isOwn: IsOwn): Promise<Agent> => {
  const { Agent: Base } = await (protocol === "https:" ? import("node:https") : import("node:http"));
  const agent = new Base({ keepAlive: true });
  const open = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const socket = open(options, callback);
    if (!(socket instanceof Socket)) throw new TypeError("a connection without an address cannot be judged");
    socket.prependOnceListener("connect", () => {
      const { remoteAddress = "", remotePort = 0 } = socket;
      if (isOwn(remoteAddress, remotePort)) socket.destroy(new OutboundError("BLOCKED", OWN, { address: remoteAddress }));
    });
    return socket;
  };
  return agent;
};

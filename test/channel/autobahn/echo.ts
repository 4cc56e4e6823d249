// The agent socket's own layer with a handler that echoes every message.
import { setImmediate as nextTurn } from "node:timers/promises";
import { CONNECT_PATHS } from "../../../protocol/index.ts";
import { SOCKET_LIMITS } from "../../../server/gateway/channel/settings.ts";
import { listen } from "../../../server/gateway/uws/listen.ts";
import { registerAgentSocket, type SocketHandler, type SocketLink } from "../../../server/gateway/uws/socket.ts";

interface Session {
  link: SocketLink | null;
}

const echo: SocketHandler<Session> = {
  // Like the real one, not within the turn that brought the request.
  upgrade: async () => {
    await nextTurn();
    return { accept: { link: null }, subprotocol: "" };
  },
  abandoned: () => undefined,
  opened: (session, link) => {
    session.link = link;
  },
  received: (session, bytes, isBinary) => void session.link?.send(isBinary ? bytes : Buffer.from(bytes).toString("utf8")),
  drained: () => undefined,
  ponged: () => undefined,
  closed: () => undefined,
};

export const startEcho = async () => {
  const listener = await listen({
    host: "127.0.0.1",
    port: 0,
    transport: { receive: () => ({ maxBodyBytes: 0, handle: async (context) => context.respond({ status: 404, headers: {}, body: "" }) }) },
    sockets: (app) => registerAgentSocket(app, echo, SOCKET_LIMITS),
  });
  return { at: { port: listener.port, path: CONNECT_PATHS[0] }, close: () => listener.close() };
};

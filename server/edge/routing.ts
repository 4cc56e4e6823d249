// Finds who serves a request: mounts on every host, then the owner of the host name, then mounts on the edge's own names.
import type { Duplex } from "node:stream";
import type { EdgeError, EdgeHandler, EdgeMount, EdgePart, EdgeRequest, EdgeResponse } from "../core/ports/edge.ts";
import { edgePages } from "./pages.ts";

export interface EdgeRouting {
  serve(request: EdgeRequest, response: EdgeResponse): Promise<void>;
  upgrade(request: EdgeRequest, socket: Duplex, head: Buffer): Promise<void>;
  /** A mount that also the port without TLS serves. */
  isPlain(path: string): boolean;
}

export interface RoutingDeps {
  readonly parts: readonly EdgePart[];
  readonly onError: (error: unknown, requestId: string) => void;
}

const NOT_FOUND: EdgeError = { status: 404, code: "NOT_FOUND", message: "There is nothing at this address." };
const NO_UPGRADE: EdgeError = { status: 426, code: "UPGRADE_NOT_SUPPORTED", message: "This address takes no upgrade." };
const FAILED: EdgeError = { status: 502, code: "EDGE_FAILED", message: "The gateway could not serve this request. Try again." };

const isUnder = (path: string, { prefix }: EdgeMount): boolean => (prefix.endsWith("/") ? path.startsWith(prefix) : path === prefix);

export const createRouting = ({ parts, onError }: RoutingDeps): EdgeRouting => {
  const mounts = parts.flatMap((part) => part.mounts ?? []);
  const hosts = parts.flatMap(({ hostOf }) => (hostOf === undefined ? [] : [hostOf]));
  const everywhere = mounts.filter((mount) => mount.everywhere === true);
  const own = mounts.filter((mount) => mount.everywhere !== true);

  const hostOf = async (host: string): Promise<EdgeHandler | null> => {
    for (const find of hosts) {
      const found = find(host);
      const handler = found instanceof Promise ? await found : found;
      if (handler !== null) return handler;
    }
    return null;
  };

  /** The handlers that may serve it, in order. */
  const handlers = async function* ({ host, path }: EdgeRequest): AsyncGenerator<EdgeHandler> {
    for (const mount of everywhere) if (isUnder(path, mount)) yield mount.handler;
    const owner = await hostOf(host);
    if (owner !== null) yield owner;
    else for (const mount of own) if (isUnder(path, mount)) yield mount.handler;
  };

  return {
    serve: async (request, response) => {
      try {
        for await (const handler of handlers(request)) if ((await handler.handle(request, response)) !== false) return;
        edgePages.refuse({ request, response }, NOT_FOUND);
      } catch (error) {
        onError(error, request.requestId);
        if (response.headersSent) response.destroy();
        else edgePages.refuse({ request, response }, FAILED);
      }
    },
    upgrade: async (request, socket, head) => {
      let isKnown = false;
      try {
        for await (const handler of handlers(request)) {
          isKnown = true;
          if (handler.upgrade !== undefined && (await handler.upgrade(request, socket, head)) !== false) return;
        }
        edgePages.refuseSocket({ request, socket }, isKnown ? NO_UPGRADE : NOT_FOUND);
      } catch (error) {
        onError(error, request.requestId);
        edgePages.refuseSocket({ request, socket }, FAILED);
      }
    },
    isPlain: (path) => everywhere.some((mount) => isUnder(path, mount)),
  };
};

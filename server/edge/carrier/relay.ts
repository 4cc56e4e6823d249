// Carries a connection from the node that a visitor came to, to the node that holds the carrier, over the internal listener of that one.
import { type IncomingMessage, request as requestOver } from "node:http";
import type { Duplex } from "node:stream";
import { DIAL_REASON_HEADER, DIAL_REASONS } from "../../../protocol/index.ts";
import { DialFailure, type DialFailureReason, type DialOptions } from "../../core/ports/carriers.ts";
import type { OwnCarriers } from "./carriers.ts";

const PROTOCOL = "mooring-relay";
const PATH = /^\/internal\/carriers\/([\w-]{1,128})\/([^/]{1,300})$/;
const RELAY_MS = 12_000;
const SWITCHING = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PROTOCOL}\r\n\r\n`;

export interface RelayTarget {
  /** The internal listener of the node that holds the carrier. */
  readonly url: string;
}

const reasonOf = (given: unknown): DialFailureReason => [...DIAL_REASONS, "offline" as const].find((reason) => reason === given) ?? "offline";

/** The caller has checked the token. */
export const createRelayServer =
  (carriers: Pick<OwnCarriers, "dialHere">) =>
  async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const [, key = "", authority = ""] = PATH.exec(request.url ?? "") ?? [];
    socket.on("error", () => undefined);
    try {
      if (key === "") throw new DialFailure("unknown");
      const stream = await carriers.dialHere(key, decodeURIComponent(authority), { halfOpen: request.headers["mooring-half-open"] === "1" });
      if (socket.destroyed) return void stream.destroy();
      socket.write(SWITCHING);
      if (head.length > 0) stream.write(head);
      stream.on("error", () => {
        // An end would look like a whole answer.
        if ("resetAndDestroy" in socket && typeof socket.resetAndDestroy === "function") socket.resetAndDestroy();
        else socket.destroy();
      });
      stream.on("close", () => (stream.readableEnded ? undefined : socket.destroy()));
      socket.on("close", () => stream.destroy());
      socket.pipe(stream);
      stream.pipe(socket);
    } catch (error) {
      const reason = error instanceof DialFailure ? error.reason : "unreachable";
      if (!socket.destroyed) socket.end(`HTTP/1.1 502 Bad Gateway\r\n${DIAL_REASON_HEADER}: ${reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    }
  };

export interface RelayCall {
  readonly target: RelayTarget;
  readonly token: string;
  readonly key: string;
  readonly authority: string;
  readonly options: DialOptions;
}

/** Rejects with `DialFailure`. */
export const relayTo = ({ target, token, key, authority, options }: RelayCall): Promise<Duplex> =>
  new Promise((resolve, reject) => {
    const request = requestOver(`${target.url}/internal/carriers/${key}/${encodeURIComponent(authority)}`, {
      agent: false,
      headers: {
        Authorization: `Bearer ${token}`,
        Connection: "Upgrade",
        Upgrade: PROTOCOL,
        ...(options.halfOpen === true ? { "Mooring-Half-Open": "1" } : {}),
      },
    });
    request.setTimeout(RELAY_MS, () => request.destroy());
    request.on("upgrade", (_response, socket, head) => {
      socket.setTimeout(0);
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.on("response", (response) => {
      response.resume();
      reject(new DialFailure(reasonOf(response.headers[DIAL_REASON_HEADER])));
    });
    request.on("error", () => reject(new DialFailure("offline")));
    request.end();
  });

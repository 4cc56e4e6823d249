// The agent socket on the library: passes upgrade, open, message, drain and close on to a handler as plain calls.
// Nobody may touch a socket after its close, nor an upgrade after its abort; this file sees to both.

import type { TemplatedApp, HttpRequest as UwsRequest, HttpResponse as UwsResponse, us_socket_context_t, WebSocket } from "uWebSockets.js";
import { STATUS_CODES } from "node:http";
import { CONNECT_PATHS } from "../../../protocol/index.ts";
import type { HttpRequest, HttpResponse } from "../http/http-message.ts";
import { corkedElsewhere } from "./loopback-cork.ts";
import { writeResponse } from "./respond.ts";
import { snapshot } from "./snapshot.ts";

/** `buffered`: taken, but the peer is slow; `dropped`: not taken. */
export type SendResult = "sent" | "buffered" | "dropped" | "closed";

export interface SocketLink {
  readonly closed: boolean;
  /** A string as text, bytes as they are. */
  send(data: string | Uint8Array): SendResult;
  /** Text in the form of bytes. The library copies them: the caller may reuse the buffer. */
  sendText(bytes: Uint8Array): SendResult;
  /** Writes within leave together. Nothing runs when the socket is closed. */
  cork(write: () => void): void;
  ping(): void;
  bufferedBytes(): number;
  /** Sends a close frame; the handler's `closed` runs before this returns. */
  end(code: number, reason: string): void;
}

interface Accepted<S> {
  readonly accept: S;
  readonly subprotocol: string;
}
export type UpgradeVerdict<S> = Accepted<S> | { readonly refuse: HttpResponse };

/** What stands behind the socket. `S` is its idea of a session; no call comes for it after `closed`. */
export interface SocketHandler<S> {
  /** A verdict at once saves the library most of its writes. */
  upgrade(request: HttpRequest): UpgradeVerdict<S> | Promise<UpgradeVerdict<S>>;
  /** The upgrade was accepted, but the peer was gone. */
  abandoned(session: S): void;
  opened(session: S, link: SocketLink): void;
  /** The bytes are only good during the call. */
  received(session: S, bytes: Uint8Array, isBinary: boolean): void;
  /** Something was written to a socket whose buffer was empty. */
  wrote?(session: S): void;
  drained(session: S): void;
  /** A frame was not taken: the peer is slower than the buffer is large. */
  dropped?(session: S): void;
  /** The library has sent the pong. */
  pinged?(session: S): void;
  ponged(session: S): void;
  closed(session: S, code: number): void;
}

export interface SocketLimits {
  /** Above this the library cuts the connection without a close frame, so it lies above the limit that the handler refuses by name. */
  readonly maxPayloadBytes: number;
  readonly idleTimeoutSeconds: number;
  readonly maxBufferedBytes: number;
}

interface Held<S> {
  readonly session: S;
  link: Link<S> | null;
}

/** Any one socket that is open. */
interface Neighbour {
  link: SocketLink | null;
}

const SEND_RESULTS: readonly SendResult[] = ["buffered", "sent", "dropped"];

/** A class, because there is one per socket: seven closures each would be a good part of what an idle agent costs. */
class Link<S> implements SocketLink {
  closed = false;
  /** Something was written since the buffer was last empty. Most sockets are idle at most ticks, and then nobody need ask the library. */
  #mayHold = false;
  readonly #ws: WebSocket<Held<S>>;
  readonly #handler: Pick<SocketHandler<S>, "wrote">;
  constructor(ws: WebSocket<Held<S>>, handler: Pick<SocketHandler<S>, "wrote">) {
    this.#ws = ws;
    this.#handler = handler;
  }
  #writes(): void {
    if (this.#mayHold || this.closed) return;
    this.#mayHold = true;
    this.#handler.wrote?.(this.#ws.getUserData().session);
  }
  send(data: string | Uint8Array): SendResult {
    this.#writes();
    return this.closed ? "closed" : (SEND_RESULTS[this.#ws.send(data, typeof data !== "string", false)] ?? "dropped");
  }
  sendText(bytes: Uint8Array): SendResult {
    this.#writes();
    return this.closed ? "closed" : (SEND_RESULTS[this.#ws.send(bytes, false, false)] ?? "dropped");
  }
  cork(write: () => void): void {
    if (!this.closed) this.#ws.cork(write);
  }
  ping(): void {
    if (!this.closed) this.#ws.ping();
  }
  bufferedBytes(): number {
    if (this.closed || !this.#mayHold) return 0;
    const bytes = this.#ws.getBufferedAmount();
    this.#mayHold = bytes > 0;
    return bytes;
  }
  end(code: number, reason: string): void {
    if (!this.closed) this.#ws.end(code, reason);
  }
}

const SWITCHING = "101 Switching Protocols";

const internalError: HttpResponse = {
  status: 500,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ success: false, code: "INTERNAL_ERROR", error: STATUS_CODES[500] }),
};

const createUpgrade =
  <S>(handler: SocketHandler<S>, neighbour: Neighbour) =>
  (res: UwsResponse, req: UwsRequest, context: us_socket_context_t): void => {
    // Read everything now: after the first await the request is gone.
    const request = snapshot(res, req);
    const { "sec-websocket-key": key = "", "sec-websocket-extensions": extensions = "" } = request.headers;
    const accept = (session: S, subprotocol: string): void => res.upgrade({ session, link: null } satisfies Held<S>, key, subprotocol, extensions, context);
    // The next bytes of this connection may be frames of a client that did not wait for the answer.
    const refuse = (response: HttpResponse): void => writeResponse(res, { ...response, close: true }, false);
    const verdict = handler.upgrade(request);
    if (!(verdict instanceof Promise)) {
      // The library corks a connection while its handler runs, and unlike `res.cork` it knows then that this one was upgraded.
      if ("accept" in verdict) accept(verdict.accept, verdict.subprotocol);
      else refuse(verdict.refuse);
      return;
    }
    let gone = false;
    res.onAborted(() => {
      gone = true;
    });
    const acceptLater = ({ accept: session, subprotocol }: Accepted<S>): void => {
      if (gone) {
        handler.abandoned(session);
        return;
      }
      // Inside another connection's cork this one does nothing, and so its end does no harm; it only silences the library's warning.
      res.cork(() => {
        // Uncorked, the library makes four system calls for a header, and none more for one that comes with the status.
        if (subprotocol !== "") res.writeStatus(`${SWITCHING}\r\nSec-WebSocket-Protocol: ${subprotocol}`);
        accept(session, "");
      });
    };
    const finish = (found: UpgradeVerdict<S>): void => {
      if ("refuse" in found) {
        if (!gone) refuse(found.refuse);
        return;
      }
      // An upgrade must not be corked by itself, against the library's advice: the socket keeps its address, so the end of `res.cork` takes it
      // for an HTTP response still, reads its state from memory that was freed, and at times closes it. Seen on first connections.
      if (gone) handler.abandoned(found.accept);
      else if (neighbour.link === null) corkedElsewhere(() => acceptLater(found));
      else neighbour.link.cork(() => acceptLater(found));
    };
    verdict.then(finish, () => finish({ refuse: internalError }));
  };

const COMPRESSION_OFF = 0;

/** Register it before the catch-all of the same app. It calls `upgraded` for each connection that is no longer HTTP. */
export const registerAgentSocket = <S>(app: TemplatedApp, handler: SocketHandler<S>, limits: SocketLimits, upgraded: () => void = () => undefined): void => {
  const live = (ws: WebSocket<Held<S>>, run: (session: S) => void): void => {
    const { session, link } = ws.getUserData();
    if (link !== null && !link.closed) run(session);
  };
  const neighbour: Neighbour = { link: null };
  for (const path of CONNECT_PATHS)
    app.ws<Held<S>>(path, {
      compression: COMPRESSION_OFF,
      maxPayloadLength: limits.maxPayloadBytes,
      idleTimeout: limits.idleTimeoutSeconds,
      sendPingsAutomatically: true,
      maxBackpressure: limits.maxBufferedBytes,
      closeOnBackpressureLimit: false,
      maxLifetime: 0,
      upgrade: createUpgrade(handler, neighbour),
      open: (ws) => {
        upgraded();
        const held = ws.getUserData();
        held.link = new Link(ws, handler);
        neighbour.link ??= held.link;
        handler.opened(held.session, held.link);
      },
      message: (ws, message, isBinary) => {
        const { session, link } = ws.getUserData();
        if (link !== null && !link.closed) handler.received(session, new Uint8Array(message), isBinary);
      },
      drain: (ws) => live(ws, (session) => handler.drained(session)),
      dropped: (ws) => live(ws, (session) => handler.dropped?.(session)),
      ping: (ws) => live(ws, (session) => handler.pinged?.(session)),
      pong: (ws) => live(ws, (session) => handler.ponged(session)),
      close: (ws, code) => {
        const { session, link } = ws.getUserData();
        if (link !== null) link.closed = true;
        if (neighbour.link === link) neighbour.link = null;
        handler.closed(session, code);
      },
    });
};

// One WebSocket to the gateway: signed upgrade, frames in and out within the rate limit, and how it ended. session.ts does the handshake.

import type { IncomingMessage } from "node:http";
import WebSocket from "ws";
import { type AgentFrame, type AgentIdentity, CONNECT_PATHS, SUBPROTOCOL } from "../../protocol/index.ts";
import { errorOf, NoAnswer, ownAnswer, type RawAnswer, retryAfterMs, timeIfSkewed } from "./answers.ts";
import { type Frame, parseFrame } from "./frames.ts";
import { proxyTo } from "./proxies.ts";
import type { SessionEnd } from "./reconnect.ts";
import type { Sign } from "./signing.ts";
import type { Time } from "./timing/time.ts";

const HANDSHAKE_MS = 15_000;
const MAX_FRAME_BYTES = 262_144;
const MAX_REFUSAL_BYTES = 65_536;
/** Frames that may wait for the rate limit; beyond this, `send` refuses new ones (acks are resent later). */
const MAX_QUEUED = 2_000;

type Sent = { [F in AgentFrame as F["op"]]: { readonly op: F["op"]; readonly data: F["data"]; readonly ref?: string } }[AgentFrame["op"]];

export interface SocketDeps {
  /** URL of the socket itself. */
  readonly url: string;
  readonly identity: AgentIdentity;
  readonly sign: Sign;
  readonly time: Time;
  readonly serverNowMs: () => number;
  /** Timestamp for a signature; never the same twice. */
  readonly stampMs: () => number;
  readonly onFrame: (frame: Frame) => void;
  /** Called once, as the last event. */
  readonly onEnd: (end: SessionEnd) => void;
}

export interface Socket {
  /** Returns the frame's id, or null if it cannot be sent. `urgent` frames (heartbeat, goodbye) bypass the rate limit. */
  send(frame: Sent, urgent?: boolean): string | null;
  /** Sets the frames a second. */
  pace(perSecond: number): void;
  /** Closes the socket, and terminates it if the peer has not answered after a second. */
  close(code: number, reason: string): void;
  /** Ends the connection without a word. */
  cut(): void;
}

/** The socket's default URL, for an identity without `connect`. */
export const socketUrl = (url: string): string => `${url.replace(/\/+$/, "").replace(/^http/, "ws")}${CONNECT_PATHS[0]}`;

/** No word of the gateway: the connection counts as broken. */
const foreign = (reason: string): SessionEnd => ({ kind: "closed", code: 1006, reason, wasReady: false, isForeign: true });
const readRefusal = (raw: RawAnswer): SessionEnd => {
  try {
    const answer = ownAnswer(raw);
    const { code, reason } = errorOf(answer);
    return { kind: "refused", status: raw.status, code, reason, retryAfterMs: retryAfterMs(answer), serverTimeMs: timeIfSkewed(answer) };
  } catch (error) {
    if (error instanceof NoAnswer) return foreign(error.message);
    throw error;
  }
};
/** Null for a body that is cut off or too large. One that does not end is cut off by the session's time limit. */
export const collectRefusal = (response: IncomingMessage, done: (text: string | null) => void): void => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_REFUSAL_BYTES) done(null);
    else chunks.push(chunk);
  });
  response.on("end", () => done(Buffer.concat(chunks).toString("utf8")));
  response.on("error", () => done(null));
};

/** A token bucket of one second's frames. The gateway answers excess frames with an error and finally closes with 4029. */
const createPace = (time: Time, write: (text: string) => void) => {
  const waiting: string[] = [];
  let perSecond = 10;
  let tokens = perSecond;
  let at = time.elapsedMs();
  let cancel: (() => void) | null = null;
  const drain = (): void => {
    cancel = null;
    const now = time.elapsedMs();
    tokens = Math.min(perSecond, tokens + ((now - at) / 1_000) * perSecond);
    at = now;
    while (tokens >= 1 && waiting.length > 0) {
      tokens -= 1;
      write(waiting.shift() ?? "");
    }
    if (waiting.length > 0) cancel = time.after(Math.ceil(((1 - tokens) / perSecond) * 1_000), drain);
  };
  return {
    put: (text: string, urgent: boolean): boolean => {
      if (urgent) write(text);
      else if (waiting.length >= MAX_QUEUED) return false;
      else waiting.push(text);
      if (!cancel) drain();
      return true;
    },
    set: (frames: number): void => {
      perSecond = Math.max(1, frames);
    },
    stop: (): void => {
      waiting.length = 0;
      cancel?.();
    },
  };
};

export const openSocket = ({ url, identity, sign, time, serverNowMs, stampMs, onFrame, onEnd }: SocketDeps): Socket => {
  const { pathname, search } = new URL(url);
  const headers = sign({ ...identity }, { method: "GET", target: pathname + search, body: "" }, new Date(stampMs()));
  const socket = new WebSocket(url, [SUBPROTOCOL], {
    headers,
    handshakeTimeout: HANDSHAKE_MS,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
    followRedirects: false,
    agent: proxyTo(url),
  });
  const pace = createPace(time, (text) => socket.send(text));
  let sequence = 0;
  let ended = false;
  let failure = "";

  const end = (how: SessionEnd): void => {
    if (ended) return;
    ended = true;
    pace.stop();
    onEnd(how);
  };
  const send: Socket["send"] = (frame, urgent = false) => {
    if (ended || socket.readyState !== WebSocket.OPEN) return null;
    sequence += 1;
    const id = String(sequence);
    return pace.put(
      JSON.stringify({ op: frame.op, id, ts: new Date(serverNowMs()).toISOString(), ...(frame.ref === undefined ? {} : { ref: frame.ref }), data: frame.data }),
      urgent,
    )
      ? id
      : null;
  };
  const complain = (code: string, text: string, ref: string | undefined): void => {
    send({ op: "error", data: { code, error: text, retryable: false }, ...(ref === undefined ? {} : { ref }) });
  };
  const take = (text: string): void => {
    const frame = parseFrame(text);
    if (frame.ok) onFrame(frame.frame);
    else complain(frame.code, frame.error, frame.ref);
  };

  socket.on("message", (bytes, binary) => {
    if (ended) return;
    if (binary) complain("UNSUPPORTED_FRAME", "binary frames are not part of this protocol", undefined);
    else take(bytes.toString());
  });
  socket.on("unexpected-response", (_, response) =>
    collectRefusal(response, (text) => {
      const { statusCode: status = 0, headers } = response;
      end(text === null ? foreign("the refusal of the upgrade was cut off") : readRefusal({ status, headers, text }));
      response.destroy();
      socket.terminate();
    }),
  );
  // A "close" event always follows.
  socket.on("error", (error) => {
    failure = error.message;
  });
  socket.on("close", (code, reason) => end({ kind: "closed", code, reason: reason.toString() || failure, wasReady: false }));

  return {
    send,
    pace: pace.set,
    close: (code, reason) => {
      if (ended) return;
      socket.close(code, reason);
      time.after(1_000, () => socket.terminate());
      end({ kind: "closed", code, reason, wasReady: false });
    },
    cut: () => {
      socket.terminate();
      end({ kind: "closed", code: 1006, reason: "cut off by the agent", wasReady: false });
    },
  };
};

// Where broken agents reach into what goes over the wire: frames in both directions, ends of connections, and requests.
import http, { type IncomingMessage, type RequestOptions } from "node:http";
import WebSocket from "ws";
import type { AgentOptions, HttpAnswer, HttpCall } from "../../../agent-sim/agent/index.ts";

type Data = Readonly<Record<string, unknown>>;
export interface WireFrame {
  readonly op: string;
  readonly id?: string;
  readonly ref?: string;
  readonly data: Data;
}

export interface WireChange {
  /** Returns what is sent instead of a frame. */
  readonly sent?: (frame: WireFrame, socket: WebSocket) => readonly WireFrame[];
  /** Returns what arrives instead of a frame. */
  readonly heard?: (frame: WireFrame) => readonly WireFrame[];
  /** Returns how a connection ended instead. */
  readonly closed?: (code: number, reason: string) => readonly [code: number, reason: string];
  /** A refused upgrade, before the agent looks at it. */
  readonly refused?: (response: IncomingMessage, socket: WebSocket) => void;
}

/** Changes every WebSocket of this process. */
export const changeWire = ({ sent, heard, closed, refused }: WireChange): void => {
  const { send, emit } = WebSocket.prototype;
  if (sent !== undefined)
    WebSocket.prototype.send = function (this: WebSocket, text: string) {
      for (const frame of sent(JSON.parse(text) as WireFrame, this)) send.call(this, JSON.stringify(frame), {}, undefined);
    };
  WebSocket.prototype.emit = function (this: WebSocket, event: string, ...words: unknown[]): boolean {
    const pass = (...changed: unknown[]): boolean => Reflect.apply(emit, this, [event, ...changed]) as boolean;
    if (event === "message" && heard !== undefined) {
      let frame: WireFrame;
      try {
        frame = JSON.parse(String(words[0])) as WireFrame;
      } catch {
        return pass(...words);
      }
      for (const each of typeof frame?.op === "string" ? heard(frame) : [frame]) pass(Buffer.from(JSON.stringify(each)), false);
      return true;
    }
    if (event === "close" && closed !== undefined) {
      const [code, reason] = closed(Number(words[0]), String(words[1] ?? ""));
      return pass(code, Buffer.from(reason));
    }
    if (event === "unexpected-response") refused?.(words[1] as IncomingMessage, this);
    return pass(...words);
  } as typeof emit;
};

/** Sees every request of this process before it is sent, those of upgrades too. */
export const beforeRequests = (look: (options: RequestOptions & { headers: Record<string, unknown> }, path: string) => void): void => {
  const { request } = http;
  http.request = ((...words: unknown[]) => {
    const [first, second] = words;
    const options = (typeof first === "string" || first instanceof URL ? second : first) as RequestOptions & { headers: Record<string, unknown> };
    look(options, String(typeof first === "string" ? first : options.path));
    return Reflect.apply(request, http, words) as unknown;
  }) as typeof request;
};

type Call = (call: HttpCall) => Promise<HttpAnswer>;
/** Changes what the agent's calls over REST bring. */
export const withCalls =
  (change: (call: HttpCall, next: Call) => Promise<HttpAnswer>) =>
  (options: AgentOptions): AgentOptions => ({ ...options, http: { ...options.http, call: (call) => change(call, options.http.call) } });

/** Changes the body of the gateway's answers to paths like this. */
export const withAnswers = (path: RegExp, change: (answer: HttpAnswer) => HttpAnswer) =>
  withCalls(async (call, next) => {
    const answer = await next(call);
    return path.test(call.path) ? change(answer) : answer;
  });

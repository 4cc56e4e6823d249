// Opens the connection of a carrier: the raw upgrade, or a WebSocket where a proxy lets nothing else pass.
import http from "node:http";
import https from "node:https";
import type { Duplex } from "node:stream";
import WebSocket, { createWebSocketStream } from "ws";
import { CARRIER_PROTOCOL } from "../../../protocol/index.ts";
import { proxyTo } from "../proxies.ts";

const CONNECT_MS = 15_000;
const MAX_REFUSAL_BYTES = 65_536;

export interface Opening {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The gateway, or something before it, refused the upgrade. */
export class CarrierRefused extends Error {
  override readonly name = "CarrierRefused";
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  constructor(status: number, headers: http.IncomingHttpHeaders, text: string) {
    super(`the carrier was refused with ${status}`);
    this.status = status;
    this.headers = headers;
    this.text = text;
  }
}

const refusedBy = (response: http.IncomingMessage, done: (error: CarrierRefused) => void): void => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const end = (): void => done(new CarrierRefused(response.statusCode ?? 0, response.headers, Buffer.concat(chunks).toString("utf8")));
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_REFUSAL_BYTES) response.destroy();
    else chunks.push(chunk);
  });
  response.on("error", end);
  response.on("close", end);
};

export const openRaw = ({ url, headers }: Opening): Promise<Duplex> =>
  new Promise((resolve, reject) => {
    const request = (url.startsWith("https:") ? https : http).request(url, {
      headers: { ...headers, Connection: "Upgrade", Upgrade: CARRIER_PROTOCOL },
      agent: proxyTo(url) ?? false,
    });
    request.setTimeout(CONNECT_MS, () => request.destroy(new Error("the upgrade took too long")));
    request.on("upgrade", (_response, socket, head) => {
      socket.setTimeout(0);
      socket.setNoDelay(true);
      // The gateway's first bytes of HTTP/2 often come together with its 101.
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.on("response", (response) => refusedBy(response, reject));
    request.on("error", reject);
    request.end();
  });

export const openWebSocket = ({ url, headers }: Opening): Promise<Duplex> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace(/^http/, "ws"), [CARRIER_PROTOCOL], {
      headers,
      handshakeTimeout: CONNECT_MS,
      perMessageDeflate: false,
      followRedirects: false,
      agent: proxyTo(url),
    });
    socket.on("unexpected-response", (_request, response) => refusedBy(response, reject));
    socket.on("error", reject);
    const stream = createWebSocketStream(socket);
    stream.on("error", reject);
    socket.on("open", () => resolve(stream));
  });

// Speaks HTTP byte by byte, to send what no proper client would.
import { once } from "node:events";
import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { eventually } from "../kit/checks/eventually.ts";
import type { Answer } from "../kit/gateway/world.ts";

export interface RawEnd {
  /** The first answer, or null when the connection ended without a whole one. */
  readonly answer: Answer | null;
  /** Everything that arrived. */
  readonly text: string;
  /** The gateway closed the connection; false when the bound ended the wait. */
  readonly closed: boolean;
}

const readAnswer = (bytes: Buffer, ended: boolean): Answer | null => {
  const cut = bytes.indexOf("\r\n\r\n");
  if (cut < 0) return null;
  const [start = "", ...lines] = bytes.subarray(0, cut).toString("latin1").split("\r\n");
  const headers = new Headers(lines.map((line): [string, string] => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
  const body = bytes.subarray(cut + 4);
  const status = Number(start.split(" ")[1]);
  const length = Number(headers.get("content-length") ?? (status === 204 ? 0 : Number.NaN));
  const isChunked = headers.get("transfer-encoding") === "chunked";
  const isWhole = isChunked ? body.toString("latin1").endsWith("0\r\n\r\n") : Number.isNaN(length) ? ended : body.byteLength >= length;
  if (!isWhole) return null;
  const text = (isChunked ? unchunk(body) : Number.isNaN(length) ? body : body.subarray(0, length)).toString("utf8");
  return { status, headers, body: headers.get("content-type")?.includes("json") === true && text !== "" ? JSON.parse(text) : text };
};

const unchunk = (body: Buffer): Buffer => {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.subarray(at, line).toString("latin1"), 16);
    if (!(size > 0)) return Buffer.concat(parts);
    parts.push(body.subarray(line + 2, line + 2 + size));
    at = line + 4 + size;
  }
};

export interface RawOptions {
  /** The longest wait for an answer or, with `untilClose`, for the end. */
  readonly boundMs?: number;
  readonly untilClose?: boolean;
}

/** Writes the parts one after another and waits for one whole answer, for the end of the connection, or for the bound. */
export const rawCall = (url: string, parts: readonly (string | Uint8Array)[], { boundMs = 5_000, untilClose = false }: RawOptions = {}): Promise<RawEnd> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let bytes = Buffer.alloc(0);
    const finish = (closed: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ answer: readAnswer(bytes, closed), text: bytes.toString("utf8"), closed });
    };
    const timer = setTimeout(() => finish(false), boundMs);
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (!untilClose && readAnswer(bytes, false) !== null) finish(false);
    });
    socket.on("error", () => undefined).on("close", () => finish(true));
    socket.on("connect", () => {
      for (const part of parts) socket.write(part);
    });
  });

/** A request's head; `Host` is added. */
export const head = (start: string, headers: Readonly<Record<string, string>> | readonly (readonly [string, string])[] = {}): string =>
  [
    `${start} HTTP/1.1`,
    "Host: gateway",
    ...(Array.isArray(headers) ? headers : Object.entries(headers)).map(([name, value]) => `${name}: ${value}`),
    "",
    "",
  ].join("\r\n");

/** One connection for several writes. The gateway runs in this process, so each write has been read when `write` resolves. */
export const openRaw = async (url: string) => {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const seen = { text: "", closed: false };
  socket.on("data", (chunk) => {
    seen.text += chunk.toString("latin1");
  });
  socket
    .on("error", () => undefined)
    .on("close", () => {
      seen.closed = true;
    });
  await once(socket, "connect");
  const until = (isThere: () => boolean): Promise<void> =>
    eventually(() => {
      if (!isThere()) throw new Error(`not yet: ${JSON.stringify(seen)}`);
    });
  return {
    seen,
    write: async (part: string | Uint8Array): Promise<void> => {
      socket.write(part);
      // Between two turns of the event loop the gateway reads the network once.
      await nextTurn();
      await nextTurn();
    },
    /** The status lines so far, in order. */
    statuses: (): readonly string[] => [...seen.text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status = ""]) => status),
    until,
    closed: () => until(() => seen.closed),
    end: () => void socket.destroy(),
  };
};

// Compresses answers above one kilobyte for those who accept it. Brotli of quality 1 takes less time than any level of gzip and saves more; both
// save five sixths of a list. Small answers are done at once, because handing one to a thread costs more than compressing it.
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from "node:zlib";
import type { Operation } from "../../../protocol/index.ts";
import { jsonSchemaOf } from "../rest/rest-input.ts";
import type { HttpResponse } from "./http-message.ts";

const MIN_CHARACTERS = 1_024;
/** The event loop waits a fifth of a millisecond for so much. */
const AT_ONCE_BYTES = 65_536;
/** Half of the threads that Node has for files, names and this. Beyond that, answers go out as they are. */
const MAX_IN_THREADS = 2;

const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT } };
const GZIP = { level: 3 };

type Encoding = "br" | "gzip";
type Bytes = Uint8Array<ArrayBuffer>;

/** What the caller prefers of what we have; null for neither. RFC 9110, 12.5.3. */
export const encodingFor = (accepted: string | undefined): Encoding | null => {
  if (accepted === undefined) return null;
  const weights = new Map<string, number>();
  for (const part of accepted.toLowerCase().split(",")) {
    const [name = "", weight] = part.split(";").map((each) => each.trim());
    const given = /^q=([01](?:\.\d{0,3})?)$/.exec(weight ?? "q=1")?.[1];
    weights.set(name, Number(given ?? 0));
  }
  const weigh = (name: string): number => weights.get(name) ?? weights.get("*") ?? 0;
  const [br, gzipped] = [weigh("br"), weigh("gzip")];
  if (br === 0 && gzipped === 0) return null;
  return br >= gzipped ? "br" : "gzip";
};

const inThread = (body: Bytes, encoding: Encoding): Promise<Bytes> =>
  new Promise((resolve, reject) => {
    const done = (error: Error | null, bytes: Bytes): void => (error === null ? resolve(bytes) : reject(error));
    if (encoding === "br") brotliCompress(body, BROTLI, done);
    else gzip(body, GZIP, done);
  });

let threads = 0;

const withEncoding = (response: HttpResponse, encoding: Encoding, body: Bytes): HttpResponse => {
  const { ETag: tag } = response.headers;
  // Bytes that differ have a weak tag in common.
  return { ...response, body, headers: { ...response.headers, "Content-Encoding": encoding, ...(tag === undefined ? {} : { ETag: `W/${tag}` }) } };
};

export const isWorthCompressing = ({ compress, body }: HttpResponse): boolean => compress === true && body !== null && body.length > MIN_CHARACTERS;

/** The answer in the form that the caller accepts: at once, or a promise of it. */
export const compressed = (response: HttpResponse, accepted: string | undefined): HttpResponse | Promise<HttpResponse> => {
  const encoding = encodingFor(accepted);
  if (encoding === null || response.body === null) return response;
  const body = typeof response.body === "string" ? Buffer.from(response.body) : Buffer.from(response.body);
  if (body.length <= AT_ONCE_BYTES) return withEncoding(response, encoding, encoding === "br" ? brotliCompressSync(body, BROTLI) : gzipSync(body, GZIP));
  if (threads >= MAX_IN_THREADS) return response;
  threads += 1;
  return inThread(body, encoding)
    .then(
      (bytes) => withEncoding(response, encoding, bytes),
      () => response,
    )
    .finally(() => {
      threads -= 1;
    });
};

const SECRET = /secret|token|password|passphrase|private|credentials|csrf|ticket|cookie|api_?key|pairing_?code|activation|nonce/i;
/** An id or a time of a secret is none. */
const HARMLESS = /(?:Id|_id|Ids|_ids|At|_at|Url|_url|Uri|Prefix|Hint|Keys)$/;

const namesIn = (schema: unknown): readonly string[] =>
  typeof schema !== "object" || schema === null
    ? []
    : Object.entries(schema).flatMap(([name, part]) => [...(name === "properties" ? Object.keys(part as object) : []), ...namesIn(part)]);

/** Each transport asks for every operation while the gateway starts. */
const told = new WeakMap<Operation, boolean>();
/** An attacker who can make a browser ask repeatedly and see the sizes of compressed answers can guess a secret in them (BREACH). */
export const hasSecret = (op: Operation): boolean => {
  const secret = told.get(op) ?? namesIn(jsonSchemaOf(op.output, "output")).some((name) => SECRET.test(name) && !HARMLESS.test(name));
  told.set(op, secret);
  return secret;
};

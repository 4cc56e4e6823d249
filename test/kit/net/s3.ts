// A double of S3 for restic: one bucket in memory behind AWS signatures of version 4, with bodies that are signed chunk by chunk.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface S3Options {
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}
export interface S3Double {
  readonly url: string;
  readonly objects: Map<string, Buffer>;
  /** How many bodies came in signed chunks, and why requests were refused. */
  readonly seen: { chunked: number; readonly refusals: string[] };
  /** The bucket is gone from now on. */
  loseBucket(): void;
  close(): Promise<void>;
}

const STREAMING = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
const sha256 = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");
const EMPTY = sha256("");
const hmac = (key: string | Uint8Array, text: string): Buffer => createHmac("sha256", key).update(text).digest();
const isSame = (one: string, other: string): boolean => one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

interface Signed {
  readonly scope: string;
  readonly date: string;
  readonly key: Buffer;
  readonly signature: string;
}
class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string) {
    super(code);
    [this.status, this.code] = [status, code];
  }
}

const AUTHORIZATION = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
const headerOf = ({ headers }: IncomingMessage, name: string): string => [headers[name] ?? ""].flat().join(",").trim();

/** Throws unless the request is signed with our key. */
const checkSignature = (request: IncomingMessage, { accessKeyId, secretAccessKey }: S3Options): Signed => {
  const found = AUTHORIZATION.exec(headerOf(request, "authorization"));
  if (found === null) throw new Refusal(403, "AccessDenied");
  const [, id = "", day = "", region = "", names = "", signature = ""] = found;
  if (id !== accessKeyId) throw new Refusal(403, "InvalidAccessKeyId");
  const [path = "", query = ""] = (request.url ?? "").split("?");
  const parameters = query === "" ? [] : query.split("&").map((each) => (each.includes("=") ? each : `${each}=`));
  const headers = names.split(";").map((name) => `${name}:${headerOf(request, name)}\n`);
  const payload = headerOf(request, "x-amz-content-sha256");
  const canonical = [request.method, path, parameters.sort().join("&"), headers.join(""), names, payload].join("\n");
  const [scope, date] = [`${day}/${region}/s3/aws4_request`, headerOf(request, "x-amz-date")];
  const key = ["aws4_request"].reduce<Buffer>(hmac, hmac(hmac(hmac(`AWS4${secretAccessKey}`, day), region), "s3"));
  const wanted = hmac(key, ["AWS4-HMAC-SHA256", date, scope, sha256(canonical)].join("\n")).toString("hex");
  if (!isSame(wanted, signature)) throw new Refusal(403, "SignatureDoesNotMatch");
  return { scope, date, key, signature };
};

/** The data of the chunks. Each is signed over the signature before it. */
const checkedChunks = (body: Buffer, { scope, date, key, signature }: Signed): Buffer => {
  const parts: Buffer[] = [];
  let before = signature;
  for (let at = 0; ; ) {
    const lineEnd = body.indexOf("\r\n", at);
    const [, size = "", own = ""] = /^([0-9a-f]+);chunk-signature=([0-9a-f]{64})$/.exec(body.toString("latin1", at, Math.max(at, lineEnd))) ?? [];
    const data = body.subarray(lineEnd + 2, lineEnd + 2 + Number.parseInt(size, 16));
    const wanted = hmac(key, ["AWS4-HMAC-SHA256-PAYLOAD", date, scope, before, EMPTY, sha256(data)].join("\n")).toString("hex");
    if (!isSame(wanted, own)) throw new Refusal(403, "SignatureDoesNotMatch");
    if (data.length === 0) return Buffer.concat(parts);
    parts.push(data);
    before = own;
    at = lineEnd + 2 + data.length + 2;
  }
};

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
};
const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const tagOf = (data: Buffer): string => `"${createHash("md5").update(data).digest("hex")}"`;
const XML = { "content-type": "application/xml" };
const LAST_MODIFIED = "2026-01-01T00:00:00.000Z";

export const startS3 = async (options: S3Options): Promise<S3Double> => {
  const objects = new Map<string, Buffer>();
  const seen = { chunked: 0, refusals: [] as string[] };
  let isThere = true;

  const list = (query: URLSearchParams): string => {
    const [prefix, delimiter] = [query.get("prefix") ?? "", query.get("delimiter") ?? ""];
    const keys = [...objects.keys()].filter((key) => key.startsWith(prefix)).sort();
    const folders = new Set<string>();
    const contents = keys.flatMap((key) => {
      const end = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
      if (end >= 0) {
        folders.add(key.slice(0, end + 1));
        return [];
      }
      const data = objects.get(key) ?? Buffer.alloc(0);
      return [
        `<Contents><Key>${escaped(key)}</Key><LastModified>${LAST_MODIFIED}</LastModified><ETag>${tagOf(data)}</ETag><Size>${data.length}</Size></Contents>`,
      ];
    });
    const common = [...folders].map((folder) => `<CommonPrefixes><Prefix>${escaped(folder)}</Prefix></CommonPrefixes>`);
    return `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>${contents.join("")}${common.join("")}</ListBucketResult>`;
  };
  const get = (request: IncomingMessage, response: ServerResponse, key: string): void => {
    const data = objects.get(key);
    if (data === undefined) throw new Refusal(404, "NoSuchKey");
    const head = { etag: tagOf(data), "last-modified": new Date(LAST_MODIFIED).toUTCString(), "content-type": "application/octet-stream" };
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headerOf(request, "range")) ?? [];
    const start = Number(from ?? 0);
    const part = data.subarray(start, to ? Number(to) + 1 : undefined);
    const range = from === undefined ? {} : { "content-range": `bytes ${start}-${start + part.length - 1}/${data.length}` };
    response.writeHead(from === undefined ? 200 : 206, { ...head, ...range, "content-length": part.length }).end(request.method === "HEAD" ? undefined : part);
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request);
    const signed = checkSignature(request, options);
    const payload = headerOf(request, "x-amz-content-sha256");
    if (payload !== STREAMING && payload !== "UNSIGNED-PAYLOAD" && payload !== sha256(body)) throw new Refusal(400, "XAmzContentSHA256Mismatch");
    const { pathname, searchParams } = new URL(request.url ?? "", "http://s3");
    const [bucket = "", ...rest] = pathname.slice(1).split("/").map(decodeURIComponent);
    const key = rest.join("/");
    if (searchParams.has("location")) return void response.writeHead(200, XML).end('<?xml version="1.0"?><LocationConstraint></LocationConstraint>');
    if (bucket !== options.bucket || !isThere) throw new Refusal(404, "NoSuchBucket");
    if (key === "") return void response.writeHead(200, XML).end(request.method === "HEAD" ? undefined : list(searchParams));
    if (request.method === "GET" || request.method === "HEAD") return get(request, response, key);
    if (request.method === "DELETE") {
      objects.delete(key);
      return void response.writeHead(204).end();
    }
    if (payload === STREAMING) seen.chunked += 1;
    const data = payload === STREAMING ? checkedChunks(body, signed) : body;
    objects.set(key, data);
    response.writeHead(200, { etag: tagOf(data) }).end();
  };

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      const { status, code } = error instanceof Refusal ? error : new Refusal(500, "InternalError");
      seen.refusals.push(code);
      const said = request.method === "HEAD" ? undefined : `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`;
      response.writeHead(status, XML).end(said);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects,
    seen,
    loseBucket: () => {
      isThere = false;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};

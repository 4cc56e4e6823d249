// Serves restic's REST protocol, version 2, over node:http, in memory that does not grow with what passes.
import { pipeline } from "node:stream/promises";
import type { EdgeMessage as Message, EdgeResponse as Response } from "../../core/ports/edge.ts";
import type { RepositoryAction, RepositoryGate, RepositoryVerdict } from "../../core/ports/repository-access.ts";
import { type FileType, MAX_BYTES, type RepositoryAddress, readAddress } from "./layout.ts";
import type { ListedFile, RepositoryStore, StoredFile } from "./store.ts";

export interface RepositoryHandlerOptions {
  readonly store: RepositoryStore;
  readonly gate: RepositoryGate;
  readonly bounds?: Partial<typeof BOUNDS>;
  readonly onError?: (error: unknown) => void;
}

/** True: the request was for a repository and has been answered. */
export type RepositoryHandler = (request: { readonly message: Message; readonly path: string }, response: Response) => Promise<boolean>;

/** Where the repositories are. */
export const REPOSITORIES = "/restic/";

export const BOUNDS = {
  /** Uploads at once; restic sends 5. */
  uploads: 64,
  uploadsOfOne: 16,
  /** Without a byte. */
  idleMs: 60_000,
  /** From the first byte of a body to its last. */
  withinMs: 3_600_000,
};

const V2 = "application/vnd.x.restic.rest.v2";
const V1 = "application/vnd.x.restic.rest.v1";
const LIMIT = "the storage limit is reached";
const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);

/** Ends a request with this status. */
class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
const refuse = (status: number, message: string): never => {
  throw new Refusal(status, message);
};

type Allowed = Extract<RepositoryVerdict, { readonly allowed: true }>;

const actionOf = (method: string, address: RepositoryAddress): RepositoryAction => {
  if (method === "GET" || method === "HEAD") return "read";
  if (method === "DELETE") return "delete";
  return address.kind === "repository" ? "create" : "add";
};

/** Null: a defect, or a fault of the disk that the client can do nothing about. */
const refusalOf = (error: unknown): Refusal | null => {
  if (error instanceof Refusal) return error;
  return error instanceof Error && "code" in error && FULL.has(error.code) ? new Refusal(507, "no space is left") : null;
};
const HEADERS: ReadonlyMap<number, readonly (readonly [string, string])[]> = new Map([
  [401, [["www-authenticate", 'Basic realm="restic"']]],
  [503, [["retry-after", "5"]]],
]);

/** restic sends it as the password of basic authentication, with any user. */
const tokenOf = ({ headers: { authorization = "" } }: Message): string | null => {
  const encoded = /^basic ([A-Za-z0-9+/=]{1,2000})$/i.exec(authorization)?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  return text.includes(":") ? text.slice(text.indexOf(":") + 1) : null;
};

interface Range {
  readonly start: number;
  readonly end: number;
}

/** Null: the whole file. One range is enough for restic, and more are ignored, as the standard allows. */
const rangeOf = ({ headers: { range } }: Message, size: number): Range | null => {
  const found = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range ?? "");
  const [first = "", last = ""] = found?.slice(1) ?? [];
  if (found === null || (first === "" && last === "")) return null;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(size - 1, Number(last));
  return start > end ? refuse(416, "the range lies outside of the file") : { start, end };
};

interface BodyBounds extends Pick<typeof BOUNDS, "idleMs" | "withinMs"> {
  readonly maxBytes: number;
  readonly space: number;
}

/** The pieces of a body, bounded in bytes and in time. */
async function* bounded(request: Message, { idleMs, withinMs, maxBytes, space }: BodyBounds): AsyncGenerator<Uint8Array, void> {
  const late = setTimeout(() => request.destroy(new Refusal(408, "the body took too long")), withinMs);
  request.setTimeout(idleMs, () => request.destroy(new Refusal(408, "the body stopped")));
  let bytes = 0;
  try {
    // A refusal is answered on the connection, so the body's end must not close it.
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
      bytes += piece.length;
      if (bytes > maxBytes) refuse(413, `the file has more than ${maxBytes} bytes`);
      if (bytes > space) refuse(507, LIMIT);
      yield piece;
    }
  } finally {
    clearTimeout(late);
    request.setTimeout(0);
  }
}

async function* listText(files: AsyncIterable<ListedFile>, withSizes: boolean): AsyncGenerator<string, void> {
  let text = "[";
  let separator = "";
  for await (const { name, size } of files) {
    text += separator + JSON.stringify(withSizes ? { name, size } : name);
    separator = ",";
    if (text.length < 65_536) continue;
    yield text;
    text = "";
  }
  yield `${text}]`;
}

const fileOf = (address: RepositoryAddress): StoredFile | null => {
  if (address.kind === "config") return { type: "config", name: "config" };
  return address.kind === "file" ? { type: address.type, name: address.name } : null;
};

const answer = (response: Response, status: number, text = ""): void => {
  response.writeHead(status, { "content-length": Buffer.byteLength(text), "content-type": "text/plain; charset=utf-8" }).end(text);
};

export const createRepositoryHandler = (options: RepositoryHandlerOptions): RepositoryHandler => {
  const { store, gate, onError } = options;
  const bounds = { ...BOUNDS, ...options.bounds };
  /** The uploads under way, by repository, and the bytes that each may still take. */
  const uploads = new Map<string, Set<{ bytes: number }>>();

  const upload = async (repository: string, expected: number, work: () => Promise<void>): Promise<void> => {
    const all = [...uploads.values()].reduce((sum, { size }) => sum + size, 0);
    const own = uploads.get(repository) ?? new Set();
    if (all >= bounds.uploads || own.size >= bounds.uploadsOfOne) refuse(503, "too many uploads at once");
    const mine = { bytes: expected };
    uploads.set(repository, own.add(mine));
    try {
      await work();
    } finally {
      own.delete(mine);
      if (own.size === 0) uploads.delete(repository);
    }
  };
  const underWay = (repository: string): number => [...(uploads.get(repository) ?? [])].reduce((sum, { bytes }) => sum + bytes, 0);

  const save = async (request: Message, repository: string, file: StoredFile, { space: left, claim }: Allowed): Promise<number> => {
    const maxBytes = MAX_BYTES[file.type];
    const length = request.headers["content-length"];
    const declared = Number(length ?? maxBytes);
    if (declared > maxBytes) refuse(413, `the file has more than ${maxBytes} bytes`);
    // A lock takes no space worth counting, and without one nothing can be deleted.
    const space = left === null || file.type === "locks" ? Number.POSITIVE_INFINITY : left - underWay(repository);
    if (space <= 0 || (length !== undefined && declared > space)) refuse(507, LIMIT);
    await upload(repository, declared, async () => {
      const pieces = bounded(request, { ...bounds, maxBytes, space });
      const result = await store.save(repository, file, pieces);
      if (result.outcome === "mismatch") refuse(400, "the bytes do not have the hash that the name says");
      if (result.outcome === "other") refuse(403, "there is another file of this name");
      if (result.outcome === "stored") await gate.changed(claim, result.bytes);
    });
    return 200;
  };
  const send = async (request: Message, response: Response, repository: string, file: StoredFile): Promise<void> => {
    const size = (await store.size(repository, file)) ?? refuse(404, "there is no such file");
    const range = rangeOf(request, size);
    const { start, end } = range ?? { start: 0, end: size - 1 };
    response.writeHead(range === null ? 200 : 206, {
      "accept-ranges": "bytes",
      "content-type": "application/octet-stream",
      "content-length": end - start + 1,
      ...(range === null ? {} : { "content-range": `bytes ${start}-${end}/${size}` }),
    });
    if (request.method === "HEAD" || size === 0) return void response.end();
    await pipeline(store.read(repository, file, { start, end }), response);
  };
  const sendList = async (request: Message, response: Response, repository: string, type: FileType): Promise<void> => {
    const withSizes = (request.headers.accept ?? "").includes(V2);
    response.writeHead(200, { "content-type": withSizes ? V2 : V1 });
    if (request.method === "HEAD") return void response.end();
    await pipeline(listText(store.list(repository, type), withSizes), response);
  };
  const remove = async (repository: string, file: StoredFile, { claim }: Allowed): Promise<number> => {
    const bytes = await store.remove(repository, file);
    if (bytes === null) return 404;
    await gate.changed(claim, -bytes);
    return 200;
  };
  const judge = async (request: Message, address: RepositoryAddress): Promise<Allowed> => {
    const { method = "" } = request;
    if (!["GET", "HEAD", "POST", "DELETE"].includes(method)) refuse(405, "only GET, HEAD, POST and DELETE");
    const verdict = await gate.judge({
      repositoryId: address.repository,
      token: tokenOf(request),
      action: actionOf(method, address),
      kind: address.kind === "list" || address.kind === "file" ? address.type : "config",
      bytes: Number(request.headers["content-length"] ?? 0) || 0,
    });
    return verdict.allowed ? verdict : refuse(verdict.status, verdict.reason);
  };
  const perform = async (request: Message, response: Response, address: RepositoryAddress): Promise<void> => {
    const { method } = request;
    const allowed = await judge(request, address);
    const { repository } = address;
    const file = fileOf(address);
    if (file === null) {
      if (method === "POST" && address.kind === "repository") await store.create(repository);
      else if (address.kind === "list" && method !== "POST") return sendList(request, response, repository, address.type);
      else refuse(404, "there is no such file");
      return answer(response, 200);
    }
    if (method === "POST") return answer(response, await save(request, repository, file, allowed));
    if (method === "DELETE") return answer(response, await remove(repository, file, allowed));
    return send(request, response, repository, file);
  };
  const refuseBy = (request: Message, response: Response, error: unknown): void => {
    const hasGone = response.destroyed || request.socket.destroyed;
    const refusal = refusalOf(error);
    // restic tries again, whether its connection or the disk failed.
    if (refusal === null && !hasGone) onError?.(error);
    if (response.headersSent || hasGone) return void response.destroy();
    // What is left of the body is not read.
    if (!request.complete) response.setHeader("connection", "close");
    for (const [name, value] of HEADERS.get(refusal?.status ?? 500) ?? []) response.setHeader(name, value);
    answer(response, refusal?.status ?? 500, `${refusal?.message ?? "the file could not be served"}\n`);
  };

  return async ({ message: request, path }, response) => {
    if (!path.startsWith(REPOSITORIES)) return false;
    try {
      const address = readAddress(path, REPOSITORIES) ?? refuse(404, "there is no such file");
      await perform(request, response, address);
    } catch (error) {
      refuseBy(request, response, error);
    }
    return true;
  };
};

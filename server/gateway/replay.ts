// What a second use of a signature means. The signed message names neither method nor path, so the first use binds it to a place.
// Reads may repeat, idempotent calls may repeat at their place, changes may not repeat at all: those are also kept in the database.
import { randomUUID } from "node:crypto";
import { HEADERS, HEADERS_V2, type Operation } from "../../protocol/index.ts";
import { AppError } from "../core/errors.ts";
import type { HttpRequest } from "./exchange.ts";

export interface SignatureUse {
  readonly agentId: string;
  readonly signature: string;
  /** "METHOD /path" */
  readonly place: string;
  readonly replay: Operation["replay"];
  /** For a nonce: good in this one request and in no other, whatever it asks. Names the request, by no word of the caller's. */
  readonly onlyIn?: string;
}

export interface SignatureMemory {
  /** The place of first use, remembering this one when there is none: the place itself, or `kept` when no second request can be in the same. */
  bind(use: string, place: string, kept?: string): Promise<string>;
}

/** Kept of a read that no other request can be: it leaves the signature to other reads. */
export const SOME_READ = "GET ";
const NOWHERE = "";

export interface ReplayDeps {
  readonly memory: SignatureMemory;
  /** False when the pair is already there. Survives restarts. */
  readonly insertUsed: (use: SignatureUse) => Promise<boolean>;
}

/** What of a signed request may be used only once: its nonce, or the signature itself. */
export const signedBy = ({ headers, method, path }: Pick<HttpRequest, "headers" | "method" | "path">): Omit<SignatureUse, "agentId" | "replay"> | null => {
  const { [HEADERS.signature]: signature, [HEADERS_V2.nonce]: nonce } = headers;
  if (signature === undefined) return null;
  const place = `${method} ${path.replace(/^\/api/, "")}`;
  return nonce === undefined ? { place, signature } : { place, signature: Buffer.from(nonce, "base64url").toString("hex"), onlyIn: randomUUID() };
};

const refused = (reason: string): AppError => new AppError("INVALID_SIGNATURE", { details: { reason } });
const method = (place: string): string => place.slice(0, place.indexOf(" "));

export const createReplayGuard =
  ({ memory, insertUsed }: ReplayDeps) =>
  async (use: SignatureUse): Promise<void> => {
    const key = `${use.agentId}:${use.signature}`;
    const first = use.onlyIn === undefined ? await memory.bind(key, use.place) : await memory.bind(key, use.onlyIn, NOWHERE);
    if (use.onlyIn !== undefined && first !== use.onlyIn) throw refused("replayed");
    const bothReads = method(first) === "GET" && method(use.place) === "GET" && use.replay === "read";
    if (use.onlyIn === undefined && first !== use.place && !bothReads) throw refused("signature_reused_elsewhere");
    if (use.replay === "changing" && !(await insertUsed(use))) throw refused("replayed");
  };

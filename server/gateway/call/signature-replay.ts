// What a second use of a signature means. A v1 signature names neither method nor path, so its first use binds it to one place.
// Calls that change something, and answers that carry a secret, want a signature never used before: those uses are also rows in the database.
import { randomUUID } from "node:crypto";
import { HEADERS, HEADERS_V2, type Operation } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import type { SignatureMemory } from "../../core/ports/signature-memory.ts";
import { skewed } from "../auth/agent.ts";
import type { HttpRequest } from "../http/http-message.ts";

export interface SignatureUse {
  readonly agentId: string;
  /** The v1 signature, or the nonce of v2. */
  readonly signature: string;
  /** "METHOD /path" */
  readonly place: string;
  readonly replay: Operation["replay"];
  readonly timestamp: string;
  /** With v2 only. */
  readonly v2?: {
    /** A name of our own for the one request in which the nonce is good. */
    readonly onlyIn: string;
    /** The v1 signature that travels beside it. */
    readonly spent: string;
  };
}

/** No request has this place, so a signature that is bound to it cannot be used again. */
export const NOWHERE = "";

export interface ReplayDeps {
  readonly memory: SignatureMemory;
  readonly clock: Clock;
  /** False when the pair is already there. Survives restarts. */
  readonly insertUsed: (use: SignatureUse) => Promise<boolean>;
}

/** The part of a signed request that is good only once: its nonce, or the v1 signature itself. */
export const signedBy = ({ headers, method, path }: Pick<HttpRequest, "headers" | "method" | "path">): Omit<SignatureUse, "agentId" | "replay"> | null => {
  const { [HEADERS.signature]: signature, [HEADERS.timestamp]: timestamp, [HEADERS_V2.nonce]: nonce } = headers;
  if (signature === undefined || timestamp === undefined) return null;
  const place = `${method} ${path.replace(/^\/api/, "")}`;
  if (nonce === undefined) return { place, timestamp, signature };
  return { place, timestamp, signature: Buffer.from(nonce, "base64url").toString("hex"), v2: { onlyIn: randomUUID(), spent: signature } };
};

const refused = (reason: string): AppError => new AppError("INVALID_SIGNATURE", { details: { reason } });

export const createReplayGuard = ({ memory, clock, insertUsed }: ReplayDeps) => {
  const checkNonce = async ({ agentId, signature }: SignatureUse, { onlyIn, spent }: NonNullable<SignatureUse["v2"]>): Promise<void> => {
    // Binds the v1 signature too: an attacker who strips the v2 headers would hold a fresh one.
    const [first] = await Promise.all([memory.bind(`${agentId}:${signature}`, onlyIn, NOWHERE), memory.bind(`${agentId}:${spent}`, NOWHERE)]);
    if (first !== onlyIn) throw refused("replayed");
  };
  const checkPlace = async ({ agentId, signature, place, replay, timestamp }: SignatureUse): Promise<void> => {
    const signedAtMs = Date.parse(timestamp);
    // Signed before this node began to remember, so a read may have used it. The agent signs again with the time that we answer.
    if (replay === "once" && clock.now().getTime() - signedAtMs > memory.coversMs) throw skewed(signedAtMs, clock.now());
    if ((await memory.bind(`${agentId}:${signature}`, place)) !== place) throw refused("signature_reused_elsewhere");
  };
  return async (use: SignatureUse): Promise<void> => {
    await (use.v2 === undefined ? checkPlace(use) : checkNonce(use, use.v2));
    if (use.replay === "once" && !(await insertUsed(use))) throw refused("replayed");
  };
};

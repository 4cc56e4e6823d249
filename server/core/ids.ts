// New ids: a prefix and a ULID, so ids sort by creation and index pages stay local.
import { hash, randomFillSync } from "node:crypto";
import { monotonicFactory } from "ulid";
import type { Id } from "../../protocol/index.ts";

// A pool, because the library would call the operating system's generator for each of sixteen letters.
const pool = new Uint8Array(4_096);
let taken = pool.length;
const randomFraction = (): number => {
  if (taken === pool.length) {
    randomFillSync(pool);
    taken = 0;
  }
  const byte = pool[taken] ?? 0;
  taken += 1;
  return byte / 256;
};

const next = monotonicFactory(randomFraction);

export const newId = <const P extends string>(prefix: P): Id<P> => `${prefix}_${next()}`;

const SECRET_BYTES = 32;
const secrets = Buffer.alloc(128 * SECRET_BYTES);
let given = secrets.length;

/** 256 random bits as base64url: shared secrets, activation tokens, tickets, nonces. They too come from a pool, which keeps none that was given away. */
export const newSecret = (): string => {
  if (given === secrets.length) {
    randomFillSync(secrets);
    given = 0;
  }
  const from = given;
  given += SECRET_BYTES;
  const secret = secrets.toString("base64url", from, given);
  secrets.fill(0, from, given);
  return secret;
};

/** The only form in which the database has secrets of 256 bits and pairing codes. */
export const secretHash = (secret: string): Buffer<ArrayBuffer> => hash("sha256", secret, "buffer");

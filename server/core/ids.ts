// New identifiers: prefix and a ULID, so that ids sort by creation and indexes stay local.
import { randomBytes } from "node:crypto";
import { monotonicFactory } from "ulid";
import type { Id } from "../../protocol/index.ts";

const next = monotonicFactory();

export const newId = <const P extends string>(prefix: P): Id<P> => `${prefix}_${next()}`;

/** 256 random bits as base64url: shared secrets, activation tokens, tickets. */
export const newSecret = (): string => randomBytes(32).toString("base64url");

// The format of an API key: svk_live_<tail of its id>_<secret>_<checksum>. Secret scanners recognise it, and the checksum refuses typos before any lookup.

import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import { secretHash } from "../../core/ids.ts";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX = "svk_live_";
const TAIL = 8;
// 43 digits hold 256 bits.
const SECRET = 43;
const CHECKSUM = 6;
const FORM = /^(svk_live_[0-9A-Za-z]{8}_[0-9A-Za-z]{43})_([0-9A-Za-z]{6})$/;

const toBase62 = (value: bigint, length: number): string => {
  let text = "";
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS.charAt(Number(rest % 62n)) + text;
  return text;
};

// Plain numbers instead of bigint, because every call with a key computes it.
const checksum = (body: string): string => {
  let text = "";
  for (let rest = crc32(body); text.length < CHECKSUM; rest = Math.floor(rest / 62)) text = DIGITS.charAt(rest % 62) + text;
  return text;
};

export interface MadeKey {
  readonly apiKey: string;
  readonly prefix: string;
  readonly last4: string;
  readonly hash: Buffer<ArrayBuffer>;
}

/** `secret` has 32 bytes. Pass it to make the same key again; the default is random. */
export const makeKey = (keyId: string, secret: Uint8Array = randomBytes(32)): MadeKey => {
  const prefix = `${PREFIX}${keyId.slice(-TAIL)}`;
  const body = `${prefix}_${toBase62(BigInt(`0x${Buffer.from(secret).toString("hex")}`), SECRET)}`;
  const apiKey = `${body}_${checksum(body)}`;
  return { apiKey, prefix, last4: apiKey.slice(-4), hash: secretHash(apiKey) };
};

export const isWellFormed = (apiKey: string): boolean => {
  const [, body, given] = FORM.exec(apiKey) ?? [];
  return body !== undefined && checksum(body) === given;
};

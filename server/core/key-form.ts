// The form of an idempotency key, whether it comes in a header or within a body.
import { AppError } from "./errors.ts";

const KEY = /^[\x20-\x7e]{1,255}$/;

/** Throws for a key that could not be stored or repeated. */
export const checkIdempotencyKey = (key: string): string => {
  if (!KEY.test(key)) throw new AppError("IDEMPOTENCY_KEY_INVALID");
  return key;
};

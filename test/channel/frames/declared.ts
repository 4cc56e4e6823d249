// Checks frames of the gateway against the contract: the op and each field must be declared, in the declared type.
import { isDeepStrictEqual } from "node:util";
import { ServerFrame } from "../../../protocol/index.ts";

/** Null for a frame that the contract declares. */
export const undeclared = (frame: unknown): Error | null => {
  const { data, error } = ServerFrame.safeParse(frame);
  if (error) return new Error(`the gateway sent what the contract does not allow: ${JSON.stringify(frame)}`, { cause: error });
  return isDeepStrictEqual(data, frame)
    ? null
    : new Error(`the gateway sent fields that the contract does not declare: ${JSON.stringify(frame)}, declared ${JSON.stringify(data)}`);
};

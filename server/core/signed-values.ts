// Values that go out and come back unchanged, such as in a link or a cookie: signed with a key derived from the master key, so any node can judge them without
// a look-up, and nothing is stored. They are not encrypted.
import { createHmac, timingSafeEqual } from "node:crypto";

const MAX_LENGTH = 1_000;

/** Keys for a purpose, derived from the master key: the one that signs, and with the ones before it those that are still good. */
export interface DerivedKeys {
  derive(purpose: string): Uint8Array;
  deriveAll(purpose: string): readonly Uint8Array[];
}

export interface SignedValues {
  make(value: object): string;
  /** Undefined for a text that this installation has not made for this purpose. Whoever reads it judges its age. */
  read(text: string): unknown;
}

const sign = (key: Uint8Array, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** A value for one purpose is worth nothing for another. */
export const createSignedValues = (keys: DerivedKeys, purpose: string): SignedValues => ({
  make: (value) => {
    const text = Buffer.from(JSON.stringify(value)).toString("base64url");
    return `${text}.${sign(keys.derive(purpose), text).toString("base64url")}`;
  },
  read: (given) => {
    const [text = "", signature = "", ...more] = given.length > MAX_LENGTH ? [] : given.split(".");
    const made = Buffer.from(signature, "base64url");
    const isOurs =
      more.length === 0 &&
      keys.deriveAll(purpose).some((key) => {
        const expected = sign(key, text);
        return made.length === expected.length && timingSafeEqual(made, expected);
      });
    return isOurs ? JSON.parse(Buffer.from(text, "base64url").toString("utf8")) : undefined;
  },
});

// Values that go out and come back unchanged, such as in a link or a cookie: signed with a key derived from the master key, so any node can judge them without
// a look-up, and nothing is stored. They are not encrypted.
import { createHmac, timingSafeEqual } from "node:crypto";

const MAX_LENGTH = 1_000;

/** 32 bytes for a purpose by each key that is still good, the one that signs first. */
export interface DerivedKeys {
  deriveAll(purpose: string): readonly Uint8Array[];
}

export interface SignedValues {
  make(value: object): string;
  /** Undefined for a text that this installation has not made for this purpose. Whoever reads it judges its age. */
  read(text: string): unknown;
}

const sign = (key: Uint8Array, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** A value for one purpose is worth nothing for another. */
export const createSignedValues = (derived: DerivedKeys, purpose: string): SignedValues => {
  // Once: visitors of tunnels bring a value with each request.
  const [newest = new Uint8Array(), ...former] = derived.deriveAll(purpose);
  return {
    make: (value) => {
      const text = Buffer.from(JSON.stringify(value)).toString("base64url");
      return `${text}.${sign(newest, text).toString("base64url")}`;
    },
    read: (given) => {
      const [text = "", signature = "", ...more] = given.length > MAX_LENGTH ? [] : given.split(".");
      const made = Buffer.from(signature, "base64url");
      const isOurs =
        more.length === 0 &&
        [newest, ...former].some((key) => {
          const expected = sign(key, text);
          return made.length === expected.length && timingSafeEqual(made, expected);
        });
      return isOurs ? JSON.parse(Buffer.from(text, "base64url").toString("utf8")) : undefined;
    },
  };
};

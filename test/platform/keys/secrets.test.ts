// A sealed secret opens only with its own key, context and bytes.
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSecretBox, SecretBoxError } from "../../../server/platform/keys/secrets.ts";

const masterKey = randomBytes(32);
const box = createSecretBox(masterKey);

describe("sealed secrets", () => {
  test("a sealed text opens unchanged, whatever it is", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.string(),
        (plain, row) => box.open(box.seal(plain, `mail|${row}`), `mail|${row}`) === Buffer.from(plain, "utf8").toString("utf8"),
      ),
    );
  });

  test("a secret does not open in another row's context", () => {
    const ofA = box.seal("a", "device-secret|ten_1|dev_a");
    expect(() => box.open(ofA, "device-secret|ten_1|dev_b")).toThrow(SecretBoxError);
    expect(() => box.open(ofA, "device-secret|ten_2|dev_a")).toThrow(SecretBoxError);
  });

  test("a secret with any byte changed, cut off or added does not open", () => {
    const sealed = box.seal("secret", "mail|row");
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Uint8Array.from(sealed, (byte, at) => (at === index ? byte ^ 1 : byte));
      expect(() => box.open(changed, "mail|row"), `byte ${index}`).toThrow(SecretBoxError);
      expect(() => box.open(sealed.subarray(0, index), "mail|row"), `length ${index}`).toThrow(SecretBoxError);
    }
    expect(() => box.open(Buffer.concat([sealed, Buffer.from([0])]), "mail|row")).toThrow(SecretBoxError);
  });

  test("a wrong master key is named as the reason", () => {
    expect(() => createSecretBox(randomBytes(32)).open(box.seal("secret", "mail|row"), "mail|row")).toThrow("another master key");
  });

  test("sealing the same text twice gives different bytes, and neither contains the text", () => {
    const [one, two] = [box.seal("a-recognisable-text", "mail|row"), box.seal("a-recognisable-text", "mail|row")];
    expect(Buffer.from(one).equals(two)).toBe(false);
    expect(Buffer.from(one).includes("a-recognisable-text")).toBe(false);
  });
});

test("a derived secret depends on the master key and the context alone", () => {
  expect(box.derive("a")).toEqual(createSecretBox(masterKey).derive("a"));
  expect(box.derive("a")).not.toEqual(box.derive("b"));
  expect(box.derive("a")).not.toEqual(createSecretBox(randomBytes(32)).derive("a"));
});

test("a master key of another length is refused", () => {
  expect(() => createSecretBox(randomBytes(16))).toThrow("32 bytes");
});

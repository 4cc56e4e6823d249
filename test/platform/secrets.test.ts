// Secrets at rest open only under the key, the context and the bytes that they were sealed with.
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSecretBox, SecretBoxError } from "../../server/platform/secrets.ts";

const masterKey = randomBytes(32);
const box = createSecretBox(masterKey);

describe("a sealed secret", () => {
  test("opens to what was sealed, whatever the text", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.string(),
        (plain, context) => box.open(box.seal(plain, context), context) === Buffer.from(plain, "utf8").toString("utf8"),
      ),
    );
  });

  test("does not open in another row's place", () => {
    const ofA = box.seal("a", "device-secret|ten_1|dev_a");
    expect(() => box.open(ofA, "device-secret|ten_1|dev_b")).toThrow(SecretBoxError);
    expect(() => box.open(ofA, "device-secret|ten_2|dev_a")).toThrow(SecretBoxError);
  });

  test("does not open when any one byte was changed, cut off or added", () => {
    const sealed = box.seal("secret", "row");
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Uint8Array.from(sealed, (byte, at) => (at === index ? byte ^ 1 : byte));
      expect(() => box.open(changed, "row"), `byte ${index}`).toThrow(SecretBoxError);
      expect(() => box.open(sealed.subarray(0, index), "row"), `length ${index}`).toThrow(SecretBoxError);
    }
    expect(() => box.open(Buffer.concat([sealed, Buffer.from([0])]), "row")).toThrow(SecretBoxError);
  });

  test("names a wrong master key as the reason", () => {
    expect(() => createSecretBox(randomBytes(32)).open(box.seal("secret", "row"), "row")).toThrow("another master key");
  });

  test("is different each time and does not contain the text", () => {
    const [one, two] = [box.seal("a-recognisable-text", "row"), box.seal("a-recognisable-text", "row")];
    expect(Buffer.from(one).equals(two)).toBe(false);
    expect(Buffer.from(one).includes("a-recognisable-text")).toBe(false);
  });
});

test("a derived secret is the same for the same key and context, and for nothing else", () => {
  expect(box.derive("a")).toEqual(createSecretBox(masterKey).derive("a"));
  expect(box.derive("a")).not.toEqual(box.derive("b"));
  expect(box.derive("a")).not.toEqual(createSecretBox(randomBytes(32)).derive("a"));
});

test("a master key of another length is refused", () => {
  expect(() => createSecretBox(randomBytes(16))).toThrow("32 bytes");
});

// A secret is hidden however a program writes it, wherever a text was cut, and whatever the secrets are.
import { expect, test } from "vitest";
import { createMasker, hiddenTexts } from "../../protocol/kit/masking.ts";

const SECRET = `p@ss"w\\ö/r d+<&>'%!*(~)\t€😀`;
const { mask, maskCut, stream } = createMasker([SECRET]);
const json = (text: string): string => JSON.stringify(text).slice(1, -1);
const unicode = (text: string, upper = false): string =>
  text.replace(/[^\0-~]/g, (one) => {
    const digits = one.charCodeAt(0).toString(16).padStart(4, "0");
    return `\\u${upper ? digits.toUpperCase() : digits}`;
  });
const percent = (text: string): string => encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
const base64 = (before: string, after = ""): string => Buffer.from(before + SECRET + after).toString("base64");

const FORMS: Readonly<Record<string, string>> = {
  "as it is": SECRET,
  "JSON of JavaScript": json(SECRET),
  "JSON of Python": unicode(json(SECRET)),
  "JSON of PHP": unicode(json(SECRET)).replaceAll("/", "\\/"),
  "JSON of Go": json(SECRET).replaceAll("<", "\\u003c").replaceAll(">", "\\u003e").replaceAll("&", "\\u0026"),
  "JSON of .NET": unicode(json(SECRET).replaceAll('\\"', "\\u0022").replaceAll("&", "\\u0026").replaceAll("'", "\\u0027"), true)
    .replaceAll("<", "\\u003C")
    .replaceAll(">", "\\u003E")
    .replaceAll("+", "\\u002B"),
  "JSON inside of JSON": json(json(SECRET)),
  "a URL's component": encodeURIComponent(SECRET),
  "RFC 3986": percent(SECRET),
  "RFC 3986 in small letters": percent(SECRET).replace(/%../g, (code) => code.toLowerCase()),
  "a path of a URL": percent(SECRET).replaceAll("%2F", "/"),
  "a form": new URLSearchParams({ a: SECRET }).toString().slice(2),
  "a whole URL": encodeURI(SECRET),
  "a URL inside of a URL": encodeURIComponent(percent(SECRET)),
  HTML: SECRET.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("'", "&#39;"),
  hexadecimal: Buffer.from(SECRET).toString("hex"),
  "hexadecimal in capitals": Buffer.from(SECRET).toString("hex").toUpperCase(),
};

test.each(Object.entries(FORMS))("a secret is hidden as %s", (_name, form) => {
  expect(mask(`before ${form} after`)).toBe("before *** after");
  expect(mask(form)).toBe("***");
});

test.each(["", "a", "ab", "abc", "user:", "näme:"])("a secret is hidden in Base64 behind %j, at any of its places", (before) => {
  for (const after of ["", "x", "xy", "xyz", "\n"]) {
    const text = base64(before, after);
    const url = Buffer.from(text, "base64").toString("base64url");
    for (const each of [text, url, text.replaceAll("/", "\\/"), encodeURIComponent(text)]) {
      const masked = mask(`Authorization: Basic ${each}`);
      expect(masked).toContain("***");
      // No more than the digits that the secret shares with what stands beside it.
      expect(masked.split("***").map((part) => part.replace("Authorization: Basic ", "").length)).toEqual([
        Math.ceil((Buffer.byteLength(before) * 8) / 6),
        expect.toSatisfy((length: number) => length <= 12),
      ]);
    }
  }
});

test("of several secrets each is hidden, also where they touch, overlap or contain another", () => {
  const masker = createMasker(["abcdef", "defghi", "cde-", "abcdefgh-long", "12", ""]);
  expect(masker.mask("abcdef|defghi|abcdefghi|abcdefgh-long|abcdefabcdef")).toBe("***|***|***|***|******");
  expect(masker.mask("12 and nothing")).toBe("12 and nothing");
});

test("the lines of a secret are hidden, each for itself and together", () => {
  const key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----";
  const masker = createMasker([key]);
  for (const line of key.split("\n")) expect(masker.mask(`x ${line} y`)).toBe("x *** y");
  expect(masker.mask(JSON.stringify({ key }))).toBe('{"key":"***"}');
});

test("a secret is hidden wherever a text is cut into parts", () => {
  const form = FORMS["RFC 3986"] ?? "";
  const text = `a p@ss ${SECRET}${SECRET} and ${form}, p@s`;
  const expected = mask(text);
  for (let at = 0; at <= text.length; at += 1)
    for (const width of [1, 7]) {
      const parts = stream();
      const out = [text.slice(0, at), text.slice(at, at + width), text.slice(at + width)].map(parts.push).join("") + parts.end();
      expect([at, out]).toEqual([at, expected]);
    }
  const letters = stream();
  expect([...text].map(letters.push).join("") + letters.end()).toBe(expected);
});

test("what a stream holds back is bounded, also by a secret that overlaps with itself", () => {
  const parts = createMasker(["aaaaaaaa"]).stream();
  const lengths = Array.from({ length: 50 }, () => parts.push("a".repeat(1_000)).length);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(10);
  expect(parts.push("bbbbbbbb and more")).toContain("bbbbbbbb");
});

test("the end of a text that was cut is hidden if a secret may begin there", () => {
  expect(maskCut(`text ${SECRET.slice(0, 9)}`)).toBe("text ***");
  expect(maskCut(`text ${SECRET} ${SECRET.slice(0, 5)}`)).toBe("text *** ***");
  expect(maskCut("text p@")).toBe("text ***");
  expect(maskCut("text")).toBe("text");
  expect(maskCut(SECRET)).toBe("***");
});

test("secrets that are made to be slow are not", () => {
  const alike = Array.from({ length: 40 }, (_, at) => `${"a".repeat(4_000 + at)}b`);
  const masker = createMasker([...alike, ...Array.from({ length: 2_000 }, (_, at) => `aaaa${at.toString(36).padStart(5, "c")}`)]);
  // An output of a command has as many characters; compared place by place, these would be 10^10.
  const text = "a".repeat(65_536);
  expect(masker.mask(text).length).toBe(65_536);
  expect(masker.mask(`${text}b`).endsWith("***")).toBe(true);
});

test("the encoded forms of many long secrets have a bound, and each secret is hidden as it is", () => {
  const long = Array.from({ length: 200 }, (_, at) => `${at} ${"é".repeat(16_000)}`);
  const texts = hiddenTexts(long);
  expect(texts.reduce((sum, text) => sum + text.length, 0)).toBeLessThan(200 * 16_010 + 10_000_000);
  expect(texts).toEqual(expect.arrayContaining(long));
});

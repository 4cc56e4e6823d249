// Group 6: text is UTF-8, all of it and nothing else. The sequences are those of Markus Kuhn's decoder stress test.
import { answers, apart, type Case, fails, text, together, told } from "./case.ts";
import { type Frame, frame, OP, toBytes } from "./frames.ts";

const hex = (bytes: string): Buffer => Buffer.from(bytes.replaceAll(" ", ""), "hex");

const fragmented = (parts: readonly Buffer[]): readonly Frame[] =>
  parts.map((payload, index) => frame(index === 0 ? OP.text : OP.continuation, payload, { fin: index === parts.length - 1 }));
const single = (bytes: Buffer): readonly Buffer[] => [...bytes].map((byte) => Buffer.from([byte]));

const INVALID = [1007];
const GREETING = Buffer.from("Hello-µ@ßöäüàá-UTF-8!!");
// "kosme" with an acute of its own code point: 2, 3, 2, 2 and 2 bytes.
const KOSME = hex("ceba e1bdb9 cf83 cebc ceb5");
// A surrogate, which UTF-8 has no place for, and ASCII after it.
const BROKEN = Buffer.concat([KOSME, hex("ed a0 80"), Buffer.from("edited")]);
// Beyond the last code point; the third and fourth byte are the point where it is beyond doubt.
const BEYOND = hex("f4 90 80 80");
const PAUSE = { pauseMs: 150 };

const failFast = (id: string, title: string, parts: readonly [Buffer, Buffer, Buffer], inOneFrame: boolean): Case => {
  const frames = fragmented(parts).map(toBytes);
  const whole = toBytes(frame(OP.text, Buffer.concat(parts)));
  const first = whole.length - (parts[1].length + parts[2].length);
  const pieces = inOneFrame ? [whole.subarray(0, first), whole.subarray(first, first + parts[1].length), whole.subarray(first + parts[1].length)] : frames;
  const writes = pieces.flatMap((bytes, index) => (index === 1 ? [{ bytes }, PAUSE] : [{ bytes }]));
  return { ...fails(told(id, title), writes, INVALID), failFast: true };
};

const listed = (group: string, title: string, valid: boolean, sequences: readonly Buffer[]): readonly Case[] =>
  sequences.map((bytes, index) => {
    const shown = bytes.length > 8 ? `${bytes.subarray(0, 8).toString("hex")}…` : bytes.toString("hex");
    const what = told(`6.${group}.${index + 1}`, `${title}: ${shown}`);
    return valid ? answers(what, together(frame(OP.text, bytes)), text(bytes)) : fails(what, together(frame(OP.text, bytes)), INVALID);
  });
const hexes = (...sequences: readonly string[]): readonly Buffer[] => sequences.map(hex);

const prefixes: readonly Case[] = Array.from({ length: KOSME.length }, (_, index) => {
  const bytes = KOSME.subarray(0, index + 1);
  const isWhole = bytes.equals(Buffer.from(bytes.toString("utf8")));
  const what = told(`6.6.${index + 1}`, `The first ${index + 1} bytes of a string of multi-byte code points`);
  return isWhole ? answers(what, together(frame(OP.text, bytes)), text(bytes)) : fails(what, together(frame(OP.text, bytes)), INVALID);
});

const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const lonely = (from: number, to: number): Buffer => Buffer.from(range(from, to).flatMap((byte) => [byte, 0x20]));
const codePoints = (points: readonly number[]): readonly Buffer[] => points.map((point) => Buffer.from(String.fromCodePoint(point)));

const MISSING_LAST = hexes("c0", "e080", "f08080", "f8808080", "fc80808080", "df", "efbf", "f7bfbf", "fbbfbfbf", "fdbfbfbfbf");
const HIGH = ["eda080", "edadbf", "edae80", "edafbf"] as const;
const PAIRS = HIGH.flatMap((high) => [`${high}edb080`, `${high}edbfbf`]);

const whole = (id: string, title: string, parts: readonly Buffer[]): Case => answers(told(id, title), apart(...fragmented(parts)), text(Buffer.concat(parts)));

export const utf8Cases: readonly Case[] = [
  answers(told("6.1.1", "Text of no bytes"), together(frame(OP.text)), text("")),
  whole("6.1.2", "Text in three fragments of no bytes", [Buffer.alloc(0), Buffer.alloc(0), Buffer.alloc(0)]),
  whole("6.1.3", "Text in three fragments, only the middle one with bytes", [Buffer.alloc(0), Buffer.from("middle frame payload"), Buffer.alloc(0)]),
  whole("6.2.1", "Valid text in one frame", [GREETING]),
  whole("6.2.2", "Valid text, cut between code points", [GREETING.subarray(0, 12), GREETING.subarray(12)]),
  whole("6.2.3", "Valid text in fragments of one byte", single(GREETING)),
  whole("6.2.4", "Multi-byte code points in fragments of one byte", single(KOSME)),
  fails(told("6.3.1", "Invalid text in one frame"), together(frame(OP.text, BROKEN)), INVALID),
  fails(told("6.3.2", "Invalid text in fragments of one byte"), apart(...fragmented(single(BROKEN))), INVALID),
  failFast("6.4.1", "Three fragments, the second invalid: failed before the third", [KOSME, BEYOND, Buffer.from("edited")], false),
  failFast("6.4.2", "The same, invalid from its second byte", [Buffer.concat([KOSME, hex("f4")]), hex("90"), hex("8080")], false),
  failFast("6.4.3", "One frame in three chops, the second invalid: failed before the third", [KOSME, BEYOND, Buffer.from("edited")], true),
  failFast("6.4.4", "The same, invalid from its second byte", [Buffer.concat([KOSME, hex("f4")]), hex("90"), hex("8080")], true),
  ...listed("5", "Valid text", true, [Buffer.from("Hello World!"), GREETING, KOSME, Buffer.from("日本語, 한국어, 中文"), Buffer.from("𝄞 😀 𠜎")]),
  ...prefixes,
  ...listed("7", "First sequence of its length", true, hexes("00", "c280", "e0a080", "f0908080")),
  ...listed("8", "First sequence of 5 and 6 bytes", false, hexes("f888808080", "fc8480808080")),
  ...listed("9", "Last sequence of its length", true, hexes("7f", "dfbf", "efbfbf", "f48fbfbf")),
  ...listed("10", "Last sequence of 4, 5 and 6 bytes", false, hexes("f7bfbfbf", "fbbfbfbfbf", "fdbfbfbfbfbf")),
  ...listed("11", "Boundary", true, hexes("ed9fbf", "ee8080", "efbfbd", "f48fbfbf")),
  ...listed("11", "Beyond the boundary", false, hexes("f4908080")).map((each) => ({ ...each, id: "6.11.5" })),
  ...listed("12", "Continuation bytes alone", false, [
    ...hexes("80", "bf", "80bf", "80bf80", "80bf80bf", "80bf80bf80", "80bf80bf80bf"),
    Buffer.from(range(0x80, 0xbf)),
  ]),
  ...listed("13", "First bytes alone", false, [lonely(0xc0, 0xdf), lonely(0xe0, 0xef), lonely(0xf0, 0xf7), lonely(0xf8, 0xfb), lonely(0xfc, 0xfd)]),
  ...listed("14", "Last continuation byte missing", false, MISSING_LAST),
  ...listed("15", "Incomplete sequences in a row", false, [Buffer.concat(MISSING_LAST)]),
  ...listed("16", "Impossible bytes", false, hexes("fe", "ff", "fefeffff")),
  ...listed("17", "Overlong slash", false, hexes("c0af", "e080af", "f08080af", "f8808080af", "fc80808080af")),
  ...listed("18", "Longest overlong sequence", false, hexes("c1bf", "e09fbf", "f08fbfbf", "f887bfbfbf", "fc83bfbfbfbf")),
  ...listed("19", "Overlong NUL", false, hexes("c080", "e08080", "f0808080", "f880808080", "fc8080808080")),
  ...listed("20", "Surrogate alone", false, hexes(...HIGH, "edb080", "edbe80", "edbfbf")),
  ...listed("21", "Surrogates in pairs", false, hexes(...PAIRS)),
  ...listed("22", "Non-character", true, codePoints(range(0, 16).flatMap((plane) => [plane * 0x1_0000 + 0xfffe, plane * 0x1_0000 + 0xffff]))),
  ...listed("23", "Special", true, codePoints(range(0xfff9, 0xffff))),
];

// Groups 1 to 5 and 10: sizes, pings, reserved bits, opcodes, fragments.
import { answers, apart, binary, type Case, fails, failsAfter, failsOnceHeard, octets, pong, text, together, told, type Write } from "./case.ts";
import { type Frame, frame, OP, toBytes } from "./frames.ts";

const SIZES = [0, 125, 126, 127, 128, 65_535, 65_536] as const;

const echoes = (group: string, opcode: number, fill: number, heard: typeof text): readonly Case[] => {
  const kind = opcode === OP.text ? "Text" : "Binary";
  const whole = SIZES.map((size, index) => {
    const payload = Buffer.alloc(size, fill);
    return answers(told(`${group}.${index + 1}`, `${kind} message of ${size} bytes`), together(frame(opcode, payload)), heard(payload));
  });
  const payload = Buffer.alloc(65_536, fill);
  const chopped: Write = { bytes: toBytes(frame(opcode, payload)), chop: 997 };
  return [...whole, answers(told(`${group}.8`, `${kind} message of 65536 bytes in chops of 997`), [chopped], heard(payload))];
};

const BYTES = Buffer.from([0x00, 0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0x00, 0xff]);
const LONGEST = Buffer.alloc(125, 0xfe);
const tenPings = Array.from({ length: 10 }, (_, index) => `payload-${index}`);

const pings: readonly Case[] = [
  answers(told("2.1", "Ping without payload"), together(frame(OP.ping)), pong("")),
  answers(told("2.2", "Ping with a text payload"), together(frame(OP.ping, "Hello, world!")), pong("Hello, world!")),
  answers(told("2.3", "Ping with a binary payload"), together(frame(OP.ping, BYTES)), pong(BYTES)),
  answers(told("2.4", "Ping with 125 bytes"), together(frame(OP.ping, LONGEST)), pong(LONGEST)),
  fails(told("2.5", "Ping with 126 bytes"), together(frame(OP.ping, Buffer.alloc(126, 0xfe)))),
  answers(told("2.6", "Ping with 125 bytes, octet by octet"), octets(frame(OP.ping, LONGEST)), pong(LONGEST)),
  answers(told("2.7", "Unsolicited pong without payload"), together(frame(OP.pong))),
  answers(told("2.8", "Unsolicited pong with payload"), together(frame(OP.pong, "unsolicited pong payload"))),
  answers(
    told("2.9", "Unsolicited pong, then a ping"),
    together(frame(OP.pong, "unsolicited pong payload"), frame(OP.ping, "ping payload")),
    pong("ping payload"),
  ),
  answers(told("2.10", "Ten pings"), together(...tenPings.map((each) => frame(OP.ping, each))), ...tenPings.map(pong)),
  answers(told("2.11", "Ten pings, octet by octet"), octets(...tenPings.map((each) => frame(OP.ping, each))), ...tenPings.map(pong)),
];

const HELLO = "Hello, world!";
const hello = frame(OP.text, HELLO);
const ping = frame(OP.ping);
const between = (bad: Frame) => [hello, bad, ping] as const;
const badBits = (rsv: number): Frame => frame(OP.text, HELLO, { rsv });

const reservedBits: readonly Case[] = [
  fails(told("3.1", "Text with RSV 1"), together(badBits(1))),
  failsAfter(told("3.2", "Text, text with RSV 2, ping"), together(...between(badBits(2))), text(HELLO)),
  failsOnceHeard(told("3.3", "Text, text with RSV 3, ping, frame by frame"), apart(...between(badBits(3))), text(HELLO)),
  failsOnceHeard(told("3.4", "Text, text with RSV 4, ping, octet by octet"), octets(...between(badBits(4))), text(HELLO)),
  fails(told("3.5", "Binary with RSV 5"), together(frame(OP.binary, BYTES, { rsv: 5 }))),
  fails(told("3.6", "Ping with RSV 6"), together(frame(OP.ping, HELLO, { rsv: 6 }))),
  fails(told("3.7", "Close with RSV 7"), together(frame(OP.close, "", { rsv: 7 }))),
];

const reservedOpcodes = (group: string, first: number): readonly Case[] => [
  fails(told(`${group}.1`, `Opcode ${first} without payload`), together(frame(first))),
  fails(told(`${group}.2`, `Opcode ${first + 1} with payload`), together(frame(first + 1, "reserved opcode payload"))),
  failsAfter(told(`${group}.3`, `Text, opcode ${first + 2}, ping`), together(...between(frame(first + 2))), text(HELLO)),
  failsAfter(
    told(`${group}.4`, `Text, opcode ${first + 3} with payload, ping`),
    together(...between(frame(first + 3, "reserved opcode payload"))),
    text(HELLO),
  ),
  fails(told(`${group}.5`, `Opcode ${first + 4} with payload, octet by octet`), octets(frame(first + 4, "reserved opcode payload"))),
];

const part = (opcode: number, payload: string, fin = false): Frame => frame(opcode, payload, { fin });
const [start, end] = [part(OP.text, "fragment1"), part(OP.continuation, "fragment2", true)];
const WHOLE = text("fragment1fragment2");
const pingBetween = [start, frame(OP.ping, "ping payload"), end] as const;
const orphan = (fin: boolean) => [part(OP.continuation, "non-continuation payload", fin), hello] as const;
const WAYS = [
  ["", together],
  [", frame by frame", apart],
  [", octet by octet", octets],
] as const;
const inEachWay = (first: number, title: string, make: (what: ReturnType<typeof told>, way: typeof together) => Case): readonly Case[] =>
  WAYS.map(([how, way], index) => make(told(`5.${first + index}`, `${title}${how}`), way));

const tangle = (fin: boolean): readonly Frame[] =>
  Array.from({ length: 2 }, () => [part(OP.continuation, "fragment1", fin), part(OP.text, "fragment2"), part(OP.continuation, "fragment3", true)]).flat();
const [firstPing, secondPing] = [frame(OP.ping, "pongme 1!"), frame(OP.ping, "pongme 2!")];
const five = [
  part(OP.text, "fragment1"),
  part(OP.continuation, "fragment2"),
  firstPing,
  part(OP.continuation, "fragment3"),
  part(OP.continuation, "fragment4"),
  secondPing,
  part(OP.continuation, "fragment5", true),
];
const fiveHeard = [pong("pongme 1!"), pong("pongme 2!"), text("fragment1fragment2fragment3fragment4fragment5")];

const fragments: readonly Case[] = [
  fails(told("5.1", "Ping in two fragments"), together(part(OP.ping, "fragment1"), end)),
  fails(told("5.2", "Pong in two fragments"), together(part(OP.pong, "fragment1"), end)),
  ...inEachWay(3, "Text in two fragments", (what, way) => answers(what, way(start, end), WHOLE)),
  ...inEachWay(6, "Text in two fragments with a ping between", (what, way) => answers(what, way(...pingBetween), pong("ping payload"), WHOLE)),
  ...inEachWay(9, "Last continuation of nothing, then text", (what, way) => fails(what, way(...orphan(true)))),
  ...inEachWay(12, "Continuation of nothing, then text", (what, way) => fails(what, way(...orphan(false)))),
  { ...fails(told("5.15", "Text in two fragments, continuation of nothing, text"), together(start, end, ...orphan(false))), strict: [WHOLE], nonStrict: [] },
  fails(told("5.16", "Twice: continuation of nothing, text in two fragments"), together(...tangle(false))),
  fails(told("5.17", "Twice: last continuation of nothing, text in two fragments"), together(...tangle(true))),
  fails(told("5.18", "Two text frames as fragments of one message"), together(start, part(OP.text, "fragment2", true))),
  answers(told("5.19", "Text in five fragments with two pings between"), together(...five), ...fiveHeard),
  answers(told("5.20", "Text in five fragments with two pings between, frame by frame"), apart(...five), ...fiveHeard),
];

const LONG = Buffer.alloc(65_536, "*");
const slices = Array.from({ length: Math.ceil(LONG.length / 1_300) }, (_, index) => LONG.subarray(index * 1_300, (index + 1) * 1_300));
const sliced = slices.map((payload, index) => frame(index === 0 ? OP.text : OP.continuation, payload, { fin: index === slices.length - 1 }));

export const framingCases: readonly Case[] = [
  ...echoes("1.1", OP.text, 0x2a, text),
  ...echoes("1.2", OP.binary, 0xfe, binary),
  ...pings,
  ...reservedBits,
  ...reservedOpcodes("4.1", 3),
  ...reservedOpcodes("4.2", 11),
  ...fragments,
];
export const autoFragmentCase: Case = answers(told("10.1.1", "Text message of 65536 bytes in frames of 1300"), apart(...sliced), text(LONG));

// The scanner never contradicts zod: it accepts a subset of what the schema accepts, and that subset holds what agents mostly send.
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { AgentFrame } from "../../../protocol/index.ts";
import { createScanner } from "../../../server/gateway/channel/scan.ts";
import { EFFORT } from "../../kit/gateway/seed.ts";

const schema = AgentFrame.options[1];
const scanner = createScanner(schema);

const percent = fc.oneof(fc.double({ min: 0, max: 100, noNaN: true }), fc.integer({ min: 0, max: 100 }), fc.constantFrom(-0, 0.1, 99.99, 1e-7, 100.5, -1));
const word = fc.string({ unit: "grapheme-ascii", maxLength: 8 });
const ODD_TIMES = [
  ...["2026-02-30T10:00:00.000Z", "2024-02-29T10:00:00.000Z", "2026-00-10T10:00:00.000Z", "2026-13-10T10:00:00.000Z", "2026-04-31T10:00:00.000Z"],
  ...["2026-12-31T24:00:00.000Z", "2026-12-31T23:60:00.000Z", "2026-12-31T23:59:60.000Z", "2026-02-00T10:00:00.000Z", "2026-02-20T10:00:00Z", "now"],
] as const;
const time = fc.oneof(
  fc.date({ min: new Date("1900-01-01"), max: new Date("2100-01-01"), noInvalidDate: true }).map((date) => date.toISOString()),
  fc.constantFrom(...ODD_TIMES),
);
/** Every field of a heartbeat: a new one does not compile until it is compared here. */
const values = {
  status: fc.constantFrom("online", "offline", "provisioning", "asleep"),
  metrics: fc.dictionary(
    fc.oneof(word, fc.constant("__proto__")),
    fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), word, fc.constant(null)),
    { maxKeys: 5 },
  ),
  cpu: percent,
  memory: percent,
  disk: percent,
  timestamp: time,
  inFlight: fc.array(word, { maxLength: 4 }),
  rttMs: percent,
} satisfies Record<keyof z.input<typeof schema>["data"], fc.Arbitrary<unknown>>;
const NAMES = Object.keys(values) as readonly (keyof typeof values)[];
const data = fc.record({ ...values, unknown: fc.jsonValue({ maxDepth: 1 }) }, { requiredKeys: [] });
const id = fc.oneof(fc.nat().map(String), word);
const record = fc.record({ op: fc.constant("heartbeat"), id, ts: word, ref: word, data }, { requiredKeys: ["op", "id", "data"] });
const shuffled = (value: object): fc.Arbitrary<object> =>
  fc.shuffledSubarray(Object.entries(value), { minLength: Object.keys(value).length }).map((entries) => Object.fromEntries(entries));
const frame = record
  .chain((value) => fc.tuple(shuffled(value), shuffled(value.data)).map(([outer, inner]) => ({ ...outer, data: inner })))
  .map((value) => JSON.stringify(value));
/** A frame with a few characters replaced, removed or inserted. */
const broken = fc
  .tuple(frame, fc.array(fc.tuple(fc.nat(), fc.constantFrom(...'{}[]":,.-+0123456789eE\\ \u0000é'), fc.nat(2)), { minLength: 1, maxLength: 3 }))
  .map(([text, changes]) =>
    changes.reduce((now, [at, by, kind]) => {
      const index = at % now.length;
      return now.slice(0, index) + (kind === 0 ? "" : by) + now.slice(kind === 2 ? index : index + 1);
    }, text),
  );

/** Whether the scanner accepts the frame. Then zod must accept it too, and return what JSON.parse returns: nothing dropped, nothing changed. */
const takes = (text: string): boolean => {
  if (!scanner.scan(Buffer.from(text))) return false;
  const parsed = JSON.parse(text);
  const bySchema = schema.parse(parsed);
  expect(parsed).toEqual(bySchema);
  expect(String(scanner.frame())).toBe(bySchema.id);
  for (const name of NAMES) expect((scanner.fields() & scanner.bits(name)) !== 0).toBe(bySchema.data[name] !== undefined);
  for (const name of ["cpu", "memory", "disk", "rttMs"] as const) {
    const value = bySchema.data[name];
    if (value !== undefined) expect(scanner.value(name)).toBe(value);
  }
  return true;
};

test("the scanner accepts no frame that zod refuses or changes, whole or damaged", () => {
  fc.assert(
    fc.property(frame, (text) => void takes(text)),
    { numRuns: 3_000 * EFFORT },
  );
  fc.assert(
    fc.property(broken, (text) => void takes(text)),
    { numRuns: 6_000 * EFFORT },
  );
});

test("the scanner agrees with zod on odd numbers, times, keys and endings", () => {
  const inside = (text: string): string => `{"op":"heartbeat","id":"1","data":{${text}}}`;
  const bodies = ['"cpu":1,"cpu":2', '"cpu":01', '"cpu":1.', '"cpu":.5', '"cpu":-0', '"cpu":1e2', '"cpu":100.0000001', '"cpu":0.30000000000000004'];
  const others = ['"metrics":{"a":1,"a":2}', '"metrics":{"__proto__":1}', '"inFlight":["a",]', '"inFlight":[]', '"cpu":1,', "", '"cpu":123456789012345678'];
  for (const body of [...bodies, ...others]) takes(inside(body));
  for (const odd of ODD_TIMES) takes(inside(`"cpu":1,"timestamp":"${odd}"`));
  for (const end of ["", "}", " ", ',"data":{}}', ',"ref":""}', ',"ref":"1"}']) takes(`{"op":"heartbeat","id":"1","data":{"cpu":1}${end}`);
  for (const text of ["", "{}", '{"op":"heartbeat","id":"1"}', '{"id":"1","data":{"cpu":1}}', '{"op":"heartbeat","data":{"cpu":1}}'])
    expect(takes(text)).toBe(false);
  for (const number of ["0", "01", "", "1x", "-1", "1234567890123456"]) expect(takes(`{"op":"heartbeat","id":"${number}","data":{"cpu":1}}`)).toBe(false);
  for (const number of ["1", "2147483647", "2147483648", "123456789012345"]) expect(takes(`{"op":"heartbeat","id":"${number}","data":{"cpu":1}}`)).toBe(true);
  expect(takes(inside('"cpu":0.3'))).toBe(true);
});

test("the scanner accepts what the reference agent sends, with the fields in any order", () => {
  const vitals = { load1: 0.25, memoryUsedPct: 43.1, uptimeSec: 86_400 };
  const ts = "2026-11-21T10:00:00.000Z";
  for (const body of [
    { status: "online", metrics: vitals, inFlight: [] },
    { inFlight: ["cmd_1"], metrics: vitals, status: "online", rttMs: 1.5 },
    { cpu: 1.5, memory: 20, disk: 99.9 },
    { timestamp: ts, disk: 3, cpu: 1 },
  ]) {
    expect(takes(JSON.stringify({ op: "heartbeat", id: "77", ts, data: body }))).toBe(true);
    expect(takes(JSON.stringify({ data: body, ts, id: "77", op: "heartbeat" }))).toBe(true);
  }
});

test("the scanner obeys the refinement that a heartbeat says something about the device", () => {
  for (const body of [{}, { timestamp: "2026-11-21T10:00:00.000Z" }, { inFlight: [], rttMs: 1 }])
    expect(takes(JSON.stringify({ op: "heartbeat", id: "1", data: body }))).toBe(false);
});

const frameOf = <D extends z.ZodType>(inner: D) => z.object({ op: z.literal("heartbeat"), id: z.string(), data: inner });
const textOf = (body: object): Buffer => Buffer.from(JSON.stringify({ op: "heartbeat", id: "1", data: body }));
const UNKNOWN: readonly (readonly [name: string, schema: z.ZodType, value: unknown])[] = [
  ["an integer", z.int(), 1.5],
  ["an exclusive bound", z.number().gt(1), 1],
  ["a multiple", z.number().multipleOf(2), 3],
  ["a coerced number", z.coerce.number(), "1"],
  ["a pattern", z.string().regex(/^a/), "b"],
  ["a format", z.email(), "b"],
  ["a time in whole seconds", z.iso.datetime({ precision: 0 }), "2026-11-21T10:00:00.000Z"],
  ["a default", z.string().default("a"), "b"],
  ["a fallback", z.number().max(1).catch(0), 2],
  ["a transformation", z.string().transform(Number), "1"],
  ["a word that JSON escapes", z.enum(['"']), '"'],
  ["a word outside ASCII", z.enum(["é"]), "é"],
  ["a boolean", z.boolean(), true],
  ["null", z.number().nullable(), null],
  ["a union", z.union([z.string(), z.number()]), 1],
  ["a shortest list", z.array(z.string()).min(1), []],
  ["a list of something unknown", z.array(z.int()), [1]],
  ["a record of one type", z.record(z.string(), z.string()), { a: 1 }],
  ["a record with known names", z.partialRecord(z.enum(["a"]), z.unknown()), { b: 1 }],
  ["a nested object", z.object({ a: z.number() }), { a: 1 }],
];

test.each(UNKNOWN)("the scanner leaves a field with %s to zod and still reads frames without it", (_name, unknown, value) => {
  const { scan } = createScanner(frameOf(z.object({ odd: unknown.optional(), even: z.number().optional() })));
  expect(scan(textOf({ odd: value, even: 1 }))).toBe(false);
  expect(scan(textOf({ even: 1 }))).toBe(true);
});

test("the scanner refuses a frame without a required field, whether it can read that field or not", () => {
  for (const needed of [z.number(), z.int()]) {
    const { scan } = createScanner(frameOf(z.object({ needed, other: z.number().optional() })));
    expect(scan(textOf({ other: 1 }))).toBe(false);
  }
});

test("zod judges the refinements once for each set of fields", () => {
  let judged = 0;
  const oneOfTwo = z.object({ a: z.number().optional(), b: z.number().optional() }).refine(({ a, b }) => {
    judged += 1;
    return a !== undefined || b !== undefined;
  });
  const { scan } = createScanner(frameOf(oneOfTwo));
  for (const round of [1, 2, 3]) {
    expect([{ a: round }, { b: round }, { a: round, b: round }, {}].map((body) => scan(textOf(body)))).toEqual([true, true, true, false]);
  }
  // The scanner leaves an empty object to zod before it comes to the refinements.
  expect(judged).toBe(3);
});

// The scanner says what the schema says, or leaves it to the schema; and it does read what agents mostly send.
import fc from "fast-check";
import { expect, test } from "vitest";
import { AgentFrame } from "../../protocol/index.ts";
import { createScanner } from "../../server/gateway/channel/scan.ts";
import { EFFORT } from "../kit/seed.ts";

const schema = AgentFrame.options[1];
const scan = createScanner(schema);
const bySchema = (text: string): unknown => {
  try {
    const { ts: _, ...frame } = schema.parse(JSON.parse(text));
    return frame;
  } catch {
    return "refused";
  }
};

const percent = fc.oneof(fc.double({ min: 0, max: 100, noNaN: true }), fc.integer({ min: 0, max: 100 }), fc.constantFrom(-0, 0.1, 99.99, 1e-7, 100.5, -1));
const word = fc.string({ unit: "grapheme-ascii", maxLength: 8 });
const data = fc.record(
  {
    status: fc.constantFrom("online", "offline", "provisioning", "asleep"),
    metrics: fc.dictionary(
      fc.oneof(word, fc.constant("__proto__")),
      fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), word, fc.constant(null)),
      { maxKeys: 5 },
    ),
    cpu: percent,
    memory: percent,
    disk: percent,
    timestamp: fc.constantFrom("2026-11-21T10:00:00.000Z", "2026-02-30T10:00:00Z", "now"),
    inFlight: fc.array(word, { maxLength: 4 }),
    unheard: fc.jsonValue({ maxDepth: 1 }),
  },
  { requiredKeys: [] },
);
const frame = fc
  .record({ op: fc.constant("heartbeat"), id: fc.oneof(fc.nat().map(String), word), ts: word, ref: word, data }, { requiredKeys: ["op", "id", "data"] })
  .map((value) => JSON.stringify(value));
/** A frame with a few of its bytes replaced, taken out or put in. */
const broken = fc
  .tuple(frame, fc.array(fc.tuple(fc.nat(), fc.constantFrom(...'{}[]":,.-+0123456789eE\\ \u0000é'), fc.nat(2)), { minLength: 1, maxLength: 3 }))
  .map(([text, changes]) =>
    changes.reduce((now, [at, by, kind]) => {
      const index = at % now.length;
      return now.slice(0, index) + (kind === 0 ? "" : by) + now.slice(kind === 2 ? index : index + 1);
    }, text),
  );

const agrees = (text: string): void => {
  const scanned = scan(Buffer.from(text));
  if (scanned !== null) expect(scanned).toEqual(bySchema(text));
};

test("agrees with the schema about good frames and about broken ones", () => {
  fc.assert(fc.property(frame, agrees), { numRuns: 3_000 * EFFORT });
  fc.assert(fc.property(broken, agrees), { numRuns: 6_000 * EFFORT });
});

test("agrees about what is easily taken for the other", () => {
  const inside = (text: string): string => `{"op":"heartbeat","id":"1","data":{${text}}}`;
  const bodies = ['"cpu":1,"cpu":2', '"cpu":01', '"cpu":1.', '"cpu":.5', '"cpu":-0', '"cpu":1e2', '"cpu":100.0000001', '"cpu":0.30000000000000004'];
  const others = ['"metrics":{"a":1,"a":2}', '"metrics":{"__proto__":1}', '"inFlight":["a",]', '"inFlight":[]', '"cpu":1,', "", '"cpu":123456789012345678'];
  for (const body of [...bodies, ...others]) agrees(inside(body));
  for (const end of ["", "}", " ", ',"data":{}}', ',"ref":""}']) agrees(`{"op":"heartbeat","id":"1","data":{"cpu":1}${end}`);
  expect(scan(Buffer.from(inside('"cpu":0.3')))).toEqual({ op: "heartbeat", id: "1", data: { cpu: 0.3 } });
});

test("reads what the reference agent sends, with the fields in any order", () => {
  const vitals = { load1: 0.25, memoryUsedPct: 43.1, uptimeSec: 86_400 };
  for (const body of [
    { status: "online", metrics: vitals, inFlight: [] },
    { inFlight: ["cmd_1"], metrics: vitals, status: "online" },
    { cpu: 1.5, memory: 20, disk: 99.9 },
    { disk: 3, cpu: 1 },
  ]) {
    expect(scan(Buffer.from(JSON.stringify({ op: "heartbeat", id: "77", ts: "2026-11-21T10:00:00.000Z", data: body })))).toEqual({
      op: "heartbeat",
      id: "77",
      data: body,
    });
  }
});

// The heartbeat_ack that is written in place equals the frame that writeFrame writes, for all numbers and times.
import fc from "fast-check";
import { expect, test } from "vitest";
import { createTestClock } from "../../server/core/clock.ts";
import { writeFrame } from "../../server/gateway/channel/frames.ts";
import { createHeartbeatAck, createTimestampCache } from "../../server/gateway/channel/heartbeat.ts";

test("an ack written in place equals writeFrame's byte for byte", () => {
  const clock = createTestClock();
  const ack = createHeartbeatAck(createTimestampCache(clock));
  const number = fc.oneof(
    fc.integer({ min: 1, max: 1_000 }),
    fc.integer({ min: 1, max: 999_999_999_999_999 }),
    fc.constantFrom(9, 10, 99, 100, 999_999_999_999_999),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(number, number, fc.nat(2)), { maxLength: 20 }), (answers) => {
      for (const [id, ref, laterMs] of answers) {
        clock.advance(laterMs);
        const now = clock.now();
        const expected = writeFrame({ op: "heartbeat_ack", ref: String(ref), data: { serverTime: now.toISOString() } }, `s${id}`, now);
        expect(Buffer.from(ack(id, ref, clock.elapsed())).toString()).toBe(expected);
      }
    }),
  );
});

// The check that every received frame of these tests passes through finds undeclared frames.
import { expect, test } from "vitest";
import { undeclared } from "./declared.ts";

const ready = { op: "ready", id: "s1", data: { deviceId: "dev_1", epoch: 1, queuedCount: 0, reconcile: [{ commandId: "cmd_1", action: "stop" }] } };
test("a declared frame passes", () => expect(undeclared(ready)).toBeNull());
test.each([
  ["an unknown op", { ...ready, op: "dance" }],
  ["a field of another type", { ...ready, data: { ...ready.data, epoch: "1" } }],
  ["a missing field", { ...ready, data: { deviceId: "dev_1" } }],
  ["a value that is not in the enum", { ...ready, data: { ...ready.data, reconcile: [{ commandId: "cmd_1", action: "escalate" }] } }],
  ["a field that is not declared", { ...ready, data: { ...ready.data, extra: true } }],
  ["a field beside data that is not declared", { ...ready, extra: true }],
])("%s is found", (_, frame) => expect(undeclared(frame)).toBeInstanceOf(Error));

// What the outbox keeps of an event's data brings back the data, whatever it is.
import { expect, test } from "vitest";
import { contract, type Group } from "../../protocol/index.ts";
import { exampleOf } from "../../protocol/kit/example.ts";
import { COMMAND_MEMBERS, packData, unpackData } from "../../server/core/rows/event-data.ts";

const COMMAND = { type: "command.completed", subjectId: "cmd_1" };
const TIME = "2026-11-22T10:00:00.000Z";
const filled = (value: unknown) => ({ ...Object.fromEntries(COMMAND_MEMBERS.map((name) => [name, value])), commandId: "cmd_1", issuedAt: TIME });
const throughJson = (event: Parameters<typeof packData>[0]) => {
  const kept = JSON.stringify(packData(event));
  return { kept, back: unpackData(event.subjectId, JSON.parse(kept)) };
};

test("the order of members covers every event of a command, and only grows at its end", () => {
  for (const { schema, durable } of Object.values(contract.commands.events))
    if (durable) expect(Object.keys(schema.shape).sort()).toEqual(["commandId", ...COMMAND_MEMBERS].sort());
  expect(COMMAND_MEMBERS.join(" ")).toMatch(
    /^issuedAt deviceId type status previous createdBy lane attempts notBefore deadlineAt sentAt finishedAt startedAt failureCode cancelRequestedAt progress/,
  );
});

test("a command's data comes back whole, at half the size", () => {
  const data = { ...filled(null), deviceId: "dev_1", attempts: 0, sentAt: "2026-11-22T10:00:01.234Z", finishedAt: "2026-11-22T09:59:59.999Z" };
  const { kept, back } = throughJson({ ...COMMAND, data });
  expect(back).toEqual(data);
  expect(kept.length).toBeLessThan(JSON.stringify(data).length / 2);
});

test.each([
  ["nothing but nulls", filled(null)],
  ["a value in every member", filled("some")],
  ["times of another precision", { ...filled("2026-11-22T10:00:00Z"), issuedAt: TIME }],
  ["a beginning of another precision", { ...filled(TIME), issuedAt: "2026-11-22T10:00:00.000000Z" }],
  ["another command than the subject", { ...filled(null), commandId: "cmd_2" }],
  ["data of no known form", { deviceId: "dev_1", n: 1 }],
])("%s: comes back whole", (_name, data) => {
  expect(throughJson({ ...COMMAND, data }).back).toEqual(data);
});

test("the data of every other event is kept as it was told", () => {
  for (const { events } of Object.values<Group>(contract))
    for (const { type, schema, durable } of Object.values(events)) {
      if (!durable || type.startsWith("command.")) continue;
      const data = exampleOf(schema);
      expect(packData({ type, subjectId: "x", data })).toBe(data);
    }
});

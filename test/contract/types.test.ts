// The compiler rejects the mistakes that a feature can make. An `@ts-expect-error` fails the type check once its mistake compiles.
import { expect, test } from "vitest";
import { z } from "zod";
import { type Contract, command, contract, type DeviceId, group } from "../../protocol/index.ts";
import { event } from "../../protocol/kit/event.ts";
import { type Emit, type Hint, happened, type SqlTx } from "../../server/core/events.ts";
import { type Handlers, implement } from "../../server/core/feature.ts";
import { orderOf } from "../../server/core/ports/command-outcomes.ts";
import type { Feature, FeaturesOf } from "../../server/features/kit.ts";

const never = (): never => {
  throw new Error("compiled, but never called");
};
const deviceId: DeviceId = "dev_x";
/** A group that orders one command. */
const backups = group({
  tag: "Backups",
  operations: {},
  commands: { run: command("backup.run", { summary: "Back up", payload: z.object({ path: z.string() }), output: z.object({ bytes: z.int() }) }) },
});
const order = { deviceId, key: "k", orderedBy: "system" } as const;
const tx: SqlTx = { query: never };
const scope = { tenantId: "ten_x" } as const;
/** Compiled, never run. */
const mistakes: readonly ((emit: Emit, hint: Hint, good: { readonly [G in keyof Contract]: Feature<Contract[G]> }) => unknown)[] = [
  // @ts-expect-error a handler is missing
  () => implement(contract.admin, { listNodes: never }),
  // @ts-expect-error a handler has the wrong result
  (): Handlers<typeof contract.admin> => implement(contract.admin, { listNodes: async () => ({ items: [{ nodeId: 7 }] }), drainNode: never }),
  // @ts-expect-error a keyed handler bypasses `commit`
  (): Handlers<typeof contract.admin> => implement(contract.admin, { listNodes: never, drainNode: async () => ({}) }),
  // @ts-expect-error a group has no feature
  (_emit, _hint, { live: _missing, ...rest }): FeaturesOf<Contract> => rest,
  // @ts-expect-error a feature is registered under another group's name
  (_emit, _hint, good): FeaturesOf<Contract> => ({ ...good, live: good.admin }),
  // @ts-expect-error the payload lacks a field
  () => happened(scope, contract.devices.events.repairChanged, deviceId, { deviceId, repairUntil: null }),
  // @ts-expect-error the payload has a field of the wrong type
  () => happened(scope, contract.devices.events.secretsRead, deviceId, { deviceId, actor: 7 }),
  // @ts-expect-error the payload has an unknown field
  () => happened(scope, contract.devices.events.secretsRotated, deviceId, { deviceId, secret: "s" }),
  // @ts-expect-error the payload of a hint has the wrong shape
  (_emit, hint) => hint(scope.tenantId, () => happened(scope, contract.commands.events.changed, "cmd_x", { commandId: "cmd_x" })),
  // @ts-expect-error no group declares this event
  () => happened(scope, event("made.up", z.object({}), "Made up"), "x", {}),
  // @ts-expect-error a hint is not stored
  (emit) => emit(tx, [happened(scope, contract.live.events.position, "x", {})]),
  // @ts-expect-error a durable event that is only hinted would be lost
  (_emit, hint) => hint(scope.tenantId, () => happened(scope, contract.devices.events.secretsRotated, deviceId, { deviceId })),
  // @ts-expect-error an event that `happened` did not create
  (emit) => emit(tx, [{ scope, event: contract.devices.events.secretsRotated, subjectId: deviceId, data: {} }]),
  // @ts-expect-error a group declares command types, but its feature handles no outcomes
  (): Feature<typeof backups> => ({ handlers: {} }),
  // @ts-expect-error an outcome handler reads a field that the output lacks
  (): Feature<typeof backups> => ({ handlers: {}, outcomes: { run: async (_tx, ended) => void (ended.kind === "succeeded" && ended.output.files) } }),
  // @ts-expect-error an outcome handler reads the output of a command that has not succeeded
  (): Feature<typeof backups> => ({ handlers: {}, outcomes: { run: async (_tx, ended) => void ended.output.bytes } }),
  // @ts-expect-error an order with the wrong payload
  () => orderOf(backups.commands.run, { ...order, payload: { path: 7 } }),
];

/** The correct form. */
const right: Feature<typeof backups> = { handlers: {}, outcomes: { run: async (_tx, ended) => void (ended.kind === "succeeded" && ended.output.bytes) } };

test("the type check covers every mistake", () => {
  expect(mistakes.length).toBeGreaterThan(15);
  expect(Object.keys(right.outcomes)).toEqual(Object.keys(backups.commands));
});

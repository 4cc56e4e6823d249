// What the composer says of a payload while somebody types it.
import { expect, test } from "vitest";
import { checkPayload, simpleFields, withField } from "../../portal/src/parts/payload.ts";

const SCHEMA = {
  type: "object",
  properties: {
    appId: { type: "string", minLength: 1, maxLength: 3 },
    lines: { type: "integer", minimum: 1, maximum: 9 },
    force: { type: "boolean" },
    mode: { type: "string", enum: ["fast", "safe"] },
    nested: { type: "object" },
    either: { anyOf: [{ type: "string" }, { type: "null" }] },
  },
  required: ["appId"],
  additionalProperties: false,
};

test.each([
  ["", ["appId: is required"]],
  ['{"appId": "a"}', []],
  ['{"appId": "a", "nested": {"any": 1}, "either": 5, "mode": "safe"}', []],
  ['{"appId": 1}', ["appId: must be a string"]],
  ['{"appId": ""}', ["appId: must not be empty"]],
  ['{"appId": "abcd"}', ["appId: must have at most 3 characters"]],
  ['{"appId": "a", "lines": 1.5}', ["lines: must be an integer"]],
  ['{"appId": "a", "lines": 10}', ["lines: must be at most 9"]],
  ['{"appId": "a", "lines": 0}', ["lines: must be at least 1"]],
  ['{"appId": "a", "force": "yes"}', ["force: must be true or false"]],
  ['{"appId": "a", "mode": "slow"}', ['mode: must be one of "fast", "safe"']],
  ['{"appId": "a", "nested": []}', ["nested: must be an object"]],
  ['{"appId": "a", "toString": 1}', ["toString: is not a property of this type"]],
  ['{"appId": "a", "__proto__": 1}', ["__proto__: is not a property of this type"]],
])("%s has the issues %j", (typed, issues) => {
  expect(checkPayload(typed, SCHEMA).issues).toEqual(issues);
});

test.each(["{", "[]", "null", '"text"', "5"])("%s is no payload", (typed) => {
  expect(checkPayload(typed, null)).toMatchObject({ payload: null, issues: [expect.any(String)] });
});

test("an unknown type takes any object", () => {
  expect(checkPayload('{"a": [1]}', null)).toEqual({ payload: { a: [1] }, issues: [] });
});

test("fields write their type into the payload, and an empty field leaves it", () => {
  const [appId, lines, force, mode] = simpleFields(SCHEMA);
  if (appId === undefined || lines === undefined || force === undefined || mode === undefined) throw new Error("the schema has four simple fields");
  expect(simpleFields(SCHEMA)).toHaveLength(4);
  expect([appId.required, lines.required, mode.options]).toEqual([true, false, ["fast", "safe"]]);
  expect(withField({ kept: 1 }, lines, "7")).toEqual({ kept: 1, lines: 7 });
  expect(withField({}, force, "true")).toEqual({ force: true });
  expect(withField({}, appId, "7")).toEqual({ appId: "7" });
  expect(withField({ lines: 7, kept: 1 }, lines, "")).toEqual({ kept: 1 });
});

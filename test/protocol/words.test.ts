// People read words: no message shows an identifier of ours, unless it quotes it as such.
import { expect, test } from "vitest";
import { ERROR_CODES, ERRORS, inWords, messageOf, PLAN_RESOURCES } from "../../protocol/index.ts";
import { identifiersIn } from "../conventions/shown-words.ts";

test.each([
  ["alertRules", "alert rules"],
  ["apiKeys", "API keys"],
  ["storageGB", "gigabytes of storage"],
  ["past_due", "past due"],
  ["HEALTH_CHECK_FAILED", "health check failed"],
  ["fooBarBaz", "foo bar baz"],
  ["usedGB", "used GB"],
  ["EXITED", "EXITED"],
  ["running", "running"],
  ["alert channels", "alert channels"],
  ["The host is private.", "The host is private."],
  ["dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R.x", "dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R.x"],
])("%s is shown as %s", (given, shown) => expect(inWords(given)).toBe(shown));

test("no error message has an identifier, whatever its details are", () => {
  for (const code of ERROR_CODES) {
    expect([code, identifiersIn(messageOf(code))]).toEqual([code, []]);
    for (const value of [...Object.keys(PLAN_RESOURCES), "rolling_back", "not_started", "consecutive_failures"]) {
      const details = { resource: value, from: value, to: value, status: value, reason: value };
      expect([code, identifiersIn(messageOf(code, details))]).toEqual([code, []]);
    }
  }
});

test("a message keeps the caller's own names and ids", () => {
  expect(messageOf("DEVICE_NOT_FOUND", { deviceId: "dev_1" })).toBe("Device dev_1 was not found.");
  expect(messageOf("DEPLOYMENT_ALREADY_EXISTS", { name: "my_shop" })).toContain("my_shop");
  expect(messageOf("PLAN_LIMIT_EXCEEDED", { resource: "alertRules" })).toBe("The plan's limit for alert rules is reached. Remove some or change the plan.");
  expect(ERRORS.COMMAND_TYPE_UNKNOWN.message).toContain("{type}");
});

test("every resource of a plan has its words", () => {
  for (const words of Object.values(PLAN_RESOURCES)) expect([words, identifiersIn(words)]).toEqual([words, []]);
});

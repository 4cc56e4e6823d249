// A frequent statement gets a name, so that PostgreSQL parses it once per session; a rare one gets none.
import { expect, test } from "vitest";
import { createStatementNames } from "../../server/platform/statements.ts";

const OFTEN = 50;

test("a frequent statement gets a name and keeps it, and another one gets another name", () => {
  const nameOf = createStatementNames();
  expect(nameOf("select 1")).toBeUndefined();
  const names = Array.from({ length: OFTEN }, () => nameOf("select 1"));
  const others = Array.from({ length: OFTEN }, () => nameOf("select 2"));
  expect(names.at(-1)).toMatch(/^m_[0-9a-f]{24}$/);
  expect(new Set(names.filter((name) => name !== undefined)).size).toBe(1);
  expect(others.at(-1)).not.toBe(names.at(-1));
});

test("a statement that is used once gets no name, however many there are", () => {
  const nameOf = createStatementNames();
  const names = Array.from({ length: 5_000 }, (_, number) => nameOf(`select ${number}`));
  expect(new Set(names)).toEqual(new Set([undefined]));
});

// Statements that come often have one name, so that PostgreSQL plans them once; those that do not come often have none.
import { expect, test } from "vitest";
import { createStatementNames } from "../../server/platform/statements.ts";

const OFTEN = 50;

test("a text that comes often gets a name and keeps it; another text gets another", () => {
  const nameOf = createStatementNames();
  expect(nameOf("select 1")).toBeUndefined();
  const names = Array.from({ length: OFTEN }, () => nameOf("select 1"));
  const others = Array.from({ length: OFTEN }, () => nameOf("select 2"));
  expect(names.at(-1)).toMatch(/^m_[0-9a-f]{24}$/);
  expect(new Set(names.filter((name) => name !== undefined)).size).toBe(1);
  expect(others.at(-1)).not.toBe(names.at(-1));
});

test("texts made for one occasion have none, however many there are", () => {
  const nameOf = createStatementNames();
  const names = Array.from({ length: 5_000 }, (_, number) => nameOf(`select ${number}`));
  expect(new Set(names)).toEqual(new Set([undefined]));
});

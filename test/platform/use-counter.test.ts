// What passes through records is written once, and counted again when it could not be.
import { expect, test } from "vitest";
import { createUseCounter, useColumns } from "../../server/core/structures/use-counter.ts";

const NAMES = ["requests", "bytes"] as const;

test("what a write could not store is written by the next one, beside what came meanwhile, and then never again", async () => {
  const counter = createUseCounter(NAMES);
  counter.add("a", { requests: 1 });
  counter.add("a", { bytes: 5 });
  await expect(
    counter.flush(async () => {
      counter.add("a", { requests: 2, bytes: 1 });
      throw new Error("the database is away");
    }),
  ).rejects.toThrow("away");
  const written: unknown[] = [];
  const write = async (used: ReadonlyMap<string, Record<(typeof NAMES)[number], number>>): Promise<void> => void written.push(useColumns(used, NAMES));
  await counter.flush(write);
  await counter.flush(write);
  expect(written).toEqual([[["a"], ["3"], ["6"]]]);
});

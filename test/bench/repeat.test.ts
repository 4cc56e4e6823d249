// Several runs joined: the median of the runs, and no loss hidden by it.
import { expect, test } from "vitest";
import { mediansOf } from "./repeat.ts";
import type { Finding } from "./report.ts";

const storm = (value: number | null, more: Partial<Finding> = {}): readonly Finding[] => [{ id: "storm", value, ...more }];

test("a single run stays as it is", () => expect(mediansOf([storm(3, { note: "one" })])).toEqual([{ id: "storm", value: 3, note: "one" }]));

test("the figure of several runs is their median, with the note of the run that measured it", () => {
  const [found] = mediansOf([storm(5, { rounds: [1] }), storm(3, { note: "quiet", rounds: [2] }), storm(2, { rounds: [3] })]);
  expect(found).toEqual({ id: "storm", value: 3, span: [2, 5], rounds: [1, 2, 3], unsound: false, note: "3 runs: 5, 3, 2; quiet" });
});

test("the figure is sound if most runs are", () => {
  const noisy = { unsound: true };
  expect(mediansOf([storm(5, noisy), storm(3), storm(2)])[0]?.unsound).toBe(false);
  expect(mediansOf([storm(5, noisy), storm(3, noisy), storm(2)])[0]).toMatchObject({ unsound: true, note: "3 runs: 5 (unsound), 3 (unsound), 2" });
});

test("one invalid run makes the result invalid", () => {
  const lost: Partial<Finding> = { unsound: true, invalid: true, note: "some commands were not acknowledged" };
  expect(mediansOf([storm(3), storm(0, lost), storm(2)])).toEqual([{ id: "storm", value: 0, ...lost }]);
});

test("a figure that most runs could not measure is missing", () => {
  expect(mediansOf([storm(3), storm(null), storm(null)])[0]?.value).toBeNull();
  expect(mediansOf([storm(null), storm(null)])[0]).not.toHaveProperty("span");
  expect(mediansOf([storm(3), storm(null), storm(2)])[0]?.value).toBe(2.5);
});

test("a metric that only some runs report counts once", () => {
  const two: readonly Finding[] = [
    { id: "storm", value: 1 },
    { id: "nodes", value: 2 },
  ];
  expect(mediansOf([two, storm(3), storm(5)]).map(({ id, value }) => [id, value])).toEqual([
    ["storm", 3],
    ["nodes", 2],
  ]);
});

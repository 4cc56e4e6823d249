// Races for the last places under a limit.
import { expect } from "vitest";
import type { Answer } from "./world.ts";

/** How many racers won. The others must have met this refusal, or, on a busy machine, waited for a lock longer than the gateway lets them. */
export const winnersOf = (answers: readonly Answer[], refusal: string): number => {
  const lost = answers.filter(({ status }) => status !== 201);
  expect([refusal, "DATABASE_BUSY"]).toEqual(expect.arrayContaining(lost.map(({ body }) => body.code)));
  return answers.length - lost.length;
};

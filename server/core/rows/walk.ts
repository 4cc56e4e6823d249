// How many rows of a long table one page of a list may look at.
import { AppError } from "../errors.ts";

/** A list over a table that nothing bounds ends its page after so many rows, found or not; its cursor goes on from there. */
export const WALK_ROWS = 50_000;

/** Skipping rows reads them, so a long list is paged by cursor. */
export const refuseTooFar = (offset: number): void => {
  if (offset < WALK_ROWS) return;
  const issues = [{ path: "cursor", code: "custom", message: `the list is too long to skip ${offset} items; page it by cursor` }];
  throw new AppError("VALIDATION_FAILED", { details: { reason: "too_far", issues } });
};

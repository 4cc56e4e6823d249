// What is both valid and storable: the ranges that PostgreSQL's columns and JavaScript's dates share.
import { z } from "zod";

/** The version of a record that the caller has read; the column counts to 2^31 - 1. */
export const Version = z.int().min(1).max(2_147_483_647);

const FIRST = Date.parse("0001-01-01T00:00:00Z");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");

/** A time as a caller names it, with any offset. PostgreSQL knows no year 0, and after 9999 ISO 8601 has another form. */
export const Moment = z.iso.datetime({ offset: true }).refine((text) => {
  const at = Date.parse(text);
  return at >= FIRST && at <= LAST;
}, "must lie in the years 1 to 9999 of UTC");

/** The difference of two clocks that a Date can show. */
export const ClockOffsetMs = z.number().min(-8.64e15).max(8.64e15);

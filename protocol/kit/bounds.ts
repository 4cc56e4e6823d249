// Ranges that both PostgreSQL's columns and JavaScript's dates can hold.
import { z } from "zod";

/** The version of a record that the caller has read. The column's maximum is 2^31 - 1. */
export const Version = z.int().min(1).max(2_147_483_647);

const FIRST = Date.parse("0001-01-01T00:00:00Z");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");

/** Whether a moment, in milliseconds since 1970, can be stored: PostgreSQL has no year 0, and ISO 8601 writes years after 9999 differently. */
export const isStorable = (ms: number): boolean => ms >= FIRST && ms <= LAST;

/** A caller's timestamp, with any offset. */
export const Moment = z.iso.datetime({ offset: true }).refine((text) => isStorable(Date.parse(text)), "must lie in the years 1 to 9999 UTC");

/** A clock difference that a Date can represent. */
export const ClockOffsetMs = z.number().min(-8.64e15).max(8.64e15);

// Where the random tests begin: one fixed number in `npm test`, another every time in `npm run fuzz`.
import fc from "fast-check";

// A commit's verdict must not hang on luck; SEED=… looks again at what a random run printed.
const given = process.env["SEED"];
export const SEED = given === "random" ? Math.floor(Math.random() * 2 ** 31) : Number.parseInt(given ?? "", 10) || 20_261_121;

/** How much longer than in `npm test` to look. */
export const EFFORT = Number.parseInt(process.env["EFFORT"] ?? "", 10) || 1;

// Loaded before every test file (vitest.config.ts), so that no property begins elsewhere.
fc.configureGlobal({ seed: SEED });

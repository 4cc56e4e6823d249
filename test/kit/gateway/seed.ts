// The seed of the random tests: fixed in `npm test`, new every time in `npm run fuzz`.
import fc from "fast-check";

// A commit must not pass or fail by luck. SEED=… repeats a run from the seed that it printed.
const given = process.env["SEED"];
export const SEED = given === "random" ? Math.floor(Math.random() * 2 ** 31) : Number.parseInt(given ?? "", 10) || 20_261_121;

/** The factor by which random tests search longer than in `npm test`. */
export const EFFORT = Number.parseInt(process.env["EFFORT"] ?? "", 10) || 1;

// vitest.config.ts loads this before every test file, so no property uses another seed.
fc.configureGlobal({ seed: SEED });

// How the agent starts foreign programs and reads their lines.

export { type Program, type ProgramEnd, type ProgramOptions, startProgram } from "../../protocol/kit/programs/program.ts";
export { type RunOptions, type RunResult, runProgram } from "../../protocol/kit/programs/run-program.ts";
export { followProgram } from "./follow-program.ts";
export { type LineOptions, linesOf } from "./lines.ts";

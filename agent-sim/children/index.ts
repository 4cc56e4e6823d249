// How the agent starts foreign programs. Nothing else in agent-sim may start one or read lines from one.
export { followProgram } from "./follow-program.ts";
export { type LineOptions, linesOf } from "./lines.ts";
export { type Program, type ProgramEnd, type ProgramOptions, startProgram } from "./program.ts";
export { type RunOptions, type RunResult, runProgram } from "./run-program.ts";

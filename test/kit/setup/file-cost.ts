// Notes what a test file costs: the processor time of its worker from here to the file's end, with that of the processes which the file has started
// and which have ended. PostgreSQL's is in the total of the run alone.
import { afterAll } from "vitest";
import { processorSeconds } from "./processor-time.ts";

declare module "vitest" {
  interface TaskMeta {
    processorSeconds?: number;
  }
}

const before = processorSeconds();
// biome-ignore lint/correctness/noEmptyPattern: the runner reads the names of fixtures from this pattern
afterAll(({}, { file }) => {
  file.meta.processorSeconds = processorSeconds() - before;
});

// The order of a run's files: within each project the dearest first, so that the last worker is not left with a long one.
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { createCostOf } from "./budget.ts";

/** vitest's own order begins with the files that took longest last time, and a fresh clone has no last time: there it compares their sizes. */
export class DearestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const byProject = await super.sort(specs);
    const nameOf = ({ moduleId }: TestSpecification): string => relative(this.ctx.config.root, moduleId);
    const costOf = createCostOf(specs.map(nameOf));
    const projects = [...new Set(byProject.map(({ project }) => project))];
    return projects.flatMap((project) => byProject.filter((spec) => spec.project === project).sort((a, b) => costOf(nameOf(b)) - costOf(nameOf(a))));
  }
}

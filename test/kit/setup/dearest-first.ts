// The order of a run's files: within each project the dearest early, so that the last worker is not left with a long one, and others between them.
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { createCostOf, USUAL } from "./budget.ts";

/** Other files after each dear one. Dear files compute and many others wait: if all dear ones came first, the processors would be idle later. */
const BETWEEN = 3;

/** vitest's own order begins with the files that took longest last time, and a fresh clone has no last time: there it compares their sizes. */
export class DearestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const byProject = await super.sort(specs);
    const nameOf = ({ moduleId }: TestSpecification): string => relative(this.ctx.config.root, moduleId);
    const costOfFile = createCostOf(specs.map(nameOf));
    const costOf = (spec: TestSpecification): number => costOfFile(nameOf(spec));
    const mixed = (files: readonly TestSpecification[]): readonly TestSpecification[] => {
      const others = files.filter((spec) => costOf(spec) <= USUAL);
      const dear = files.filter((spec) => costOf(spec) > USUAL).sort((a, b) => costOf(b) - costOf(a));
      return [...dear.flatMap((spec, nth) => [spec, ...others.slice(nth * BETWEEN, (nth + 1) * BETWEEN)]), ...others.slice(dear.length * BETWEEN)];
    };
    const projects = [...new Set(byProject.map(({ project }) => project))];
    return projects.flatMap((project) => mixed(byProject.filter((spec) => spec.project === project)));
  }
}

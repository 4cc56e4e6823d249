// Makes a plan of the records of a document as they come, so that a long one never is in memory whole.
import { createHash } from "node:crypto";
import type { Import, Permission } from "../../../protocol/index.ts";
import { HISTORY, type Planner } from "./plan.ts";
import { canonical, type PlannedLine } from "./plan-changes.ts";
import type { ImportRow } from "./store.ts";
import type { WantedLine } from "./wanted.ts";

const LINES_AT_ONCE = 500;

/** What one needs to plan and apply an import, besides what each of its lines needs. Only owners have the second one. */
export const rightsFor = (mode: Import["mode"]): readonly Permission[] => (mode === "replace" ? ["import:write", "tenant:delete"] : ["import:write"]);

export interface PlanSource {
  readonly mode: Import["mode"];
  readonly lines: AsyncIterable<WantedLine> | Iterable<WantedLine>;
  /** The kinds that the document has a section for. */
  readonly kinds: ReadonlySet<string>;
  /** Keeps the next lines of the plan. */
  readonly keep: (lines: readonly PlannedLine[]) => Promise<void>;
}
export type PlanFacts = Pick<ImportRow, "planHash" | "counts" | "lines" | "deletesToConfirm">;

/** Plans each record, and then what is to be deleted. Says what the plan does in all, and its hash. */
export const makePlan = async (planner: Planner, { mode, lines, kinds, keep }: PlanSource): Promise<PlanFacts> => {
  const hash = createHash("sha256");
  const counts: ImportRow["counts"] = {};
  let [count, last] = [0, 0];
  let waiting: PlannedLine[] = [];
  const add = async (line: PlannedLine): Promise<void> => {
    hash.update(`${canonical(line)}\n`);
    counts[line.action] = (counts[line.action] ?? 0) + 1;
    count += 1;
    last = line.n;
    if (line.code === HISTORY) return;
    waiting.push(line);
    if (waiting.length < LINES_AT_ONCE) return;
    await keep(waiting);
    waiting = [];
  };
  for await (const line of lines) await add(await planner.planOf(line));
  const { lines: deletions, toConfirm } = mode === "replace" ? await planner.deletionsOf(kinds, last + 1) : { lines: [], toConfirm: null };
  for (const line of deletions) await add(line);
  await keep(waiting);
  return { planHash: hash.digest("hex"), counts, lines: count, deletesToConfirm: toConfirm };
};

// Does something with many records, a few at a time. What fails stays chosen, with its reason beside it; the rest goes on.
import { useState } from "react";
import { codeOf } from "../api/client.ts";
import { factsOf } from "../ui/failure.tsx";
import type { Progress } from "../ui/list/bulk-bar.tsx";
import type { Selection } from "../ui/list/selection.ts";

const AT_ONCE = 4;
const reasonOf = (error: unknown): string => {
  const { sentence } = factsOf(error);
  const code = codeOf(error);
  return code === undefined ? sentence : `${sentence} ${code}`;
};

/** Ids with the reason why it did not work. */
export type Faults = ReadonlyMap<string, string>;
export interface Batch {
  readonly ids: readonly string[];
  /** Answers those that failed. */
  readonly run: (tell: (done: number, faults: Faults) => void) => Promise<void>;
}

/** One call for each record, AT_ONCE at a time. */
export const eachOf =
  <R>(records: readonly R[], idOf: (record: R) => string, work: (record: R) => Promise<unknown>): Batch["run"] =>
  async (tell) => {
    const rest = records.values();
    const worker = async (): Promise<void> => {
      for (const record of rest) {
        const fault = await work(record).then(
          () => null,
          (error: unknown) => reasonOf(error),
        );
        tell(1, fault === null ? new Map() : new Map([[idOf(record), fault]]));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  };

/** `after` reads again what has changed. */
export const useBulk = (selection: Selection, total: number, after: () => Promise<void>) => {
  const [progress, setProgress] = useState<Progress | null>(null);
  const run = async (word: string, batches: AsyncIterable<Batch>): Promise<void> => {
    const faults = new Map<string, string>();
    let done = 0;
    const show = (isOver: boolean): void => setProgress({ word, done, total: selection.count(total), failed: faults.size, isOver });
    show(false);
    selection.setFaults(faults);
    try {
      for await (const { ids, run: work } of batches)
        await work((more, failed) => {
          done += more;
          for (const [id, fault] of failed) faults.set(id, fault);
          show(false);
        }).catch((error: unknown) => {
          done += ids.length;
          for (const id of ids) faults.set(id, reasonOf(error));
        });
    } catch (error) {
      // The rows could not be read: what was not reached stays chosen as it was.
      setProgress({ word: `${word} stopped. ${reasonOf(error)}`, done, total: done, failed: faults.size, isOver: true });
      await after();
      return;
    }
    selection.setFaults(new Map(faults));
    if (faults.size > 0) selection.only([...faults.keys()]);
    show(true);
    await after();
  };
  return { progress, run };
};

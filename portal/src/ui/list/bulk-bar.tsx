// The bar below a list of which rows are chosen: how many, all that match, what can be done with them, and how far that is.
import type { ReactNode } from "react";
import { numbers } from "../count.ts";
import css from "./bulk-bar.module.css";
import type { Selection } from "./selection.ts";

export interface Progress {
  /** What is done, such as `Tagging`. */
  readonly word: string;
  readonly done: number;
  readonly total: number;
  readonly failed: number;
  readonly isOver: boolean;
}

interface BulkBarProps {
  readonly selection: Selection;
  readonly total: number;
  readonly progress: Progress | null;
  /** Buttons. */
  readonly children: ReactNode;
}

const wordsOf = ({ word, done, total, failed, isOver }: Progress): string => {
  const failures = failed === 0 ? "" : `, ${numbers.format(failed)} failed`;
  if (!isOver) return `${word}: ${numbers.format(done)} of ${numbers.format(total)}${failures}`;
  return `${word}: ${numbers.format(done - failed)} done${failures === "" ? "" : `${failures} and still selected`}`;
};

export const BulkBar = ({ selection, total, progress, children }: BulkBarProps) => {
  const count = selection.count(total);
  const isBusy = progress !== null && !progress.isOver;
  return (
    <section className={css["bar"]} aria-label="Selected rows">
      <strong>{numbers.format(count)} selected</strong>
      {count < total && !isBusy ? (
        <button type="button" data-kind="plain" onClick={selection.chooseAll}>
          Select all {numbers.format(total)} that match
        </button>
      ) : null}
      {isBusy ? <progress max={Math.max(1, progress.total)} value={progress.done} aria-label={progress.word} /> : null}
      <span role="status">{progress === null ? "" : wordsOf(progress)}</span>
      <fieldset className={css["actions"]} disabled={isBusy}>
        <legend className="out-of-sight">With the selected rows</legend>
        {children}
        <button type="button" data-kind="plain" onClick={() => selection.only([])}>
          Clear
        </button>
      </fieldset>
    </section>
  );
};

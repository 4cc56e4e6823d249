// Something to run or to paste, and the button that copies it.
import { type ReactNode, useState } from "react";
import { PageIcon } from "../../ui/icon.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";

/** False where the browser does not let the page: over plain http, or without permission. Keeps the press of a button valid while the text is made. */
const copyLater = async (made: Promise<string>): Promise<boolean> => {
  const { clipboard } = navigator;
  if (clipboard === undefined) return made.then(() => false);
  const blob = made.then((words) => new Blob([words], { type: "text/plain" }));
  return clipboard.write([new ClipboardItem({ "text/plain": blob })]).then(
    () => true,
    () => made.then(() => false),
  );
};

export interface CodeBlockProps {
  /** What the button copies, such as `the command`. */
  readonly what: string;
  readonly children: ReactNode;
  /** What is copied; it may be made now. */
  readonly copied: () => Promise<string>;
}
export const CodeBlock = ({ what, children, copied }: CodeBlockProps) => {
  const [said, say] = useState<string | null>(null);
  const copy = (): void => {
    say(null);
    copyLater(copied()).then(
      (done) => say(done ? text.copied : text.selectIt),
      // The one that makes the text shows why it failed.
      () => say(null),
    );
  };
  return (
    <div className={css["code"]}>
      <button type="button" data-size="small" aria-label={`${text.copy} ${what}`} onClick={copy}>
        <PageIcon name="copy" />
        {text.copy}
      </button>
      <pre>{children}</pre>
      <p role="status" className={css["said"]}>
        {said}
      </p>
    </div>
  );
};

// The walkthroughs of the documents: shell steps that a reader types one after another, and that tests run as they are written.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export interface Walkthrough {
  readonly document: string;
  readonly heading: string;
}

export const FIVE_MINUTES: Walkthrough = { document: "README.md", heading: "The first five minutes" };
/** The others continue the first five minutes. */
export const SECOND_PERSON: Walkthrough = { document: "docs/access.md", heading: "A second person, step by step" };
export const INSTALL_AN_APP: Walkthrough = { document: "docs/apps.md", heading: "Install an app" };
export const BACK_UP_AN_APP: Walkthrough = { document: "docs/backups.md", heading: "Back up and restore, step by step" };
export const REACH_AN_APP: Walkthrough = { document: "docs/reach.md", heading: "Open an app to the outside, step by step" };
/** Begins from an installation of its own. */
export const RESTORE_THE_INSTALLATION: Walkthrough = { document: "docs/operating.md", heading: "Save and restore the installation" };

export const WALKTHROUGHS: readonly Walkthrough[] = [FIVE_MINUTES, SECOND_PERSON, INSTALL_AN_APP, BACK_UP_AN_APP, REACH_AN_APP];

const STEP = /```sh\n(.*?)```/gsu;

/** The shell blocks of a text. */
export const shellBlocksIn = (text: string): readonly string[] => [...text.matchAll(STEP)].map(([, block = ""]) => block);

/** The text below a heading of the second level, up to the next one. */
const sectionOf = (text: string, heading: string): string => text.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";

export const stepsOf = async ({ document, heading }: Walkthrough): Promise<readonly string[]> => {
  const text = await readFile(fileURLToPath(new URL(`../../${document}`, import.meta.url)), "utf8");
  const steps = shellBlocksIn(sectionOf(text, heading));
  if (steps.length === 0) throw new Error(`${document} has no steps under "${heading}"`);
  return steps;
};

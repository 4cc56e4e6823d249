// Reads docs/deploy/Dockerfile: its stages, and what each copies.

export interface Stage {
  readonly steps: readonly { readonly word: string; readonly rest: string }[];
}

export const stagesOf = (dockerfile: string): readonly Stage[] =>
  dockerfile
    .split(/^(?=FROM )/m)
    .slice(1)
    .map((text) => ({
      steps: text.split("\n").flatMap((line) => {
        const [, word = "", rest = ""] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
        return word === "" ? [] : [{ word, rest }];
      }),
    }));
/** What a stage copies, and from which other stage. */
export const copiesOf = ({ steps }: Stage): readonly { readonly from: string | null; readonly sources: readonly string[] }[] =>
  steps
    .filter(({ word }) => word === "COPY")
    .map(({ rest }) => {
      const words = rest.split(" ");
      const from = words[0]?.startsWith("--from=") === true ? (words.shift() ?? null) : null;
      return { from, sources: words.slice(0, -1) };
    });

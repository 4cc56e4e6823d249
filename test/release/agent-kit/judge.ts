// Runs cases of the kit against a program, in this process or as a user does.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { allCases } from "../../../protocol/agent-kit/cases/suites.ts";
import { createPatience, kitTime } from "../../../protocol/agent-kit/kit-time.ts";
import { runCases } from "../../../protocol/agent-kit/run-cases.ts";
import type { CaseResult } from "../../../protocol/agent-kit/verdict.ts";
import { ROOT, runToEnd } from "../../flows/processes.ts";

export const PROGRAMS = fileURLToPath(new URL("../../../protocol/agent-kit/programs", import.meta.url));
const BUNDLE = `
  const { bundleFile } = await import(process.argv[1]);
  await bundleFile(process.argv[2], { entry: "test/release/agent-kit/judged.ts", outfile: process.argv[3], version: "1.0.0" });
`;

export interface JudgedProgram {
  /** The command of the reference agent. */
  readonly words: readonly string[];
  readonly folder: string;
  /** Runs these cases; all agents but the right one are named by what is broken. */
  judge(ids: readonly string[], broken?: string, words?: readonly string[]): Promise<readonly CaseResult[]>;
  remove(): void;
}

/** One file, because a case starts its agent up to twenty times. */
export const buildJudged = async (): Promise<JudgedProgram> => {
  const folder = mkdtempSync(join(tmpdir(), "judged-"));
  const outfile = join(folder, "judged.mjs");
  const { code, stderr } = await runToEnd([process.execPath, "--input-type=module", "-e", BUNDLE, join(ROOT, "agent-sim/package/bundle.mjs"), ROOT, outfile], {
    env: {},
  });
  if (code !== 0) throw new Error(`the agent cannot be bundled: ${stderr}`);
  const words = [process.execPath, outfile];
  return {
    words,
    folder,
    judge: async (ids, broken, own = words) => {
      const patience = createPatience(kitTime);
      const cases = allCases().filter(({ id }) => ids.includes(id));
      try {
        return await runCases(cases, {
          words: broken === undefined ? own : [...own, broken],
          env: { PATH: process.env["PATH"], HOME: folder },
          time: kitTime,
          patience,
          atOnce: 6,
          out: join(folder, "kit-out"),
          tracesAll: false,
          programs: PROGRAMS,
          onResult: () => undefined,
        });
      } finally {
        patience.stop();
      }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};

// A trial with one gap in which the database does not serve as usual, while somebody asks for commands all the time.
import { pause, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { type Asked, askMeanwhile, toldOf } from "../../rig/ask-meanwhile.ts";
import type { Rig } from "../../rig/rig.ts";
import type { Context } from "../../scenario.ts";
import { runTrial, type Trial, type TrialOptions, type TrialStage } from "../../trial.ts";

export interface GapOptions {
  readonly rig: Rig;
  readonly context: Context;
  readonly gapMs: { readonly full: number; readonly short: number };
  /** The fault, in the words of the history. */
  readonly words: string;
  /** The returned function ends the gap. */
  begin(stage: TrialStage): Promise<() => Promise<void> | void>;
  /** Runs when the gap is over, while the load goes on. */
  after?(deviceId: string): Promise<void>;
  /** A later answer counts as too late. */
  readonly latestMs?: number;
  /** Between two calls in the gap. */
  readonly askEveryMs?: number;
  readonly trial?: Partial<TrialOptions>;
}

export interface GapTrial extends Trial {
  readonly answers: Asked["answers"];
}

/** Load before the gap, and after it. */
const AROUND_SECONDS = 3;

const isFull = ({ scale }: Context): boolean => scale.seconds > 10;

/** Answers of none of the kinds that a gap may have: 503 with Retry-After, or none before it is over. */
export const wrongOf = (answers: Asked["answers"]): number => answers["503 without"] + answers["no answer"] + answers.other + answers["2xx meanwhile"];

export const runGapTrial = async (options: GapOptions): Promise<GapTrial> => {
  const { rig, context, gapMs, words, begin, after, latestMs, askEveryMs, trial: more = {} } = options;
  const { seed, scale, control } = context;
  const forMs = isFull(context) ? gapMs.full : gapMs.short;
  const [bystander] = await rig.provision(1);
  const deviceId = bystander?.deviceId ?? "";
  const state: { asked: Asked | null; during: boolean } = { asked: null, during: true };
  const trouble = async (stage: TrialStage): Promise<void> => {
    await stage.wait(1_000);
    stage.fault(words);
    const end = await begin(stage);
    const asking = askMeanwhile(rig, deviceId, {
      during: () => state.during,
      ...(latestMs === undefined ? {} : { latestMs }),
      ...(askEveryMs === undefined ? {} : { everyMs: askEveryMs }),
    });
    await pause(time, forMs);
    state.during = false;
    await end();
    await after?.(deviceId);
    state.asked = await asking;
  };
  const seconds = Math.max(scale.seconds, forMs / 1_000 + AROUND_SECONDS);
  const trial = await runTrial({ impatient: control, ...more, rig, seed, scale: { ...scale, seconds }, trouble });
  if (state.asked === null) throw new Error("nobody asked in the gap");
  return { ...trial, answers: state.asked.answers, notes: [...trial.notes, toldOf(state.asked)] };
};

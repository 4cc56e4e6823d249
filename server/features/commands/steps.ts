// The history of a command as its row keeps it: one entry per step. An entry leaves out what is as in the entry before, because every command has a history.
import type { CommandStatus } from "../../../protocol/index.ts";
import type { Instant } from "./state.ts";

export interface HistoryStep {
  readonly at: Instant;
  readonly to: CommandStatus;
  /** A principal, the device's id, "session", "poll" or "system". */
  readonly by: string;
  readonly attempt: number;
  readonly epoch: number | null;
  readonly node: string | null;
  readonly code: string | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

/** The first entry's `attempt`, `epoch` and `node` default to these of NOWHERE. */
export type StoredStep = Pick<HistoryStep, "at" | "to" | "by"> & {
  readonly [K in "attempt" | "epoch" | "node"]?: HistoryStep[K];
} & { readonly code?: string; readonly detail?: Readonly<Record<string, unknown>> };

type Place = Pick<HistoryStep, "attempt" | "epoch" | "node">;
const NOWHERE: Place = { attempt: 0, epoch: null, node: null };

/** An agent decides how many acks with a code it sends; of more steps than this the first and the newest are kept. */
export const MAX_STEPS = 200;

export const readSteps = (stored: readonly StoredStep[]): readonly (HistoryStep & { readonly from: CommandStatus | null })[] => {
  let [place, from]: [Place, CommandStatus | null] = [NOWHERE, null];
  return stored.map(({ at, to, by, code = null, detail = null, ...moved }) => {
    const step = { at, from, to, by, ...place, ...moved, code, detail };
    place = { attempt: step.attempt, epoch: step.epoch, node: step.node };
    from = to;
    return step;
  });
};

const store = (step: HistoryStep, before: Place): StoredStep => ({
  at: step.at,
  to: step.to,
  by: step.by,
  ...(step.attempt === before.attempt ? {} : { attempt: step.attempt }),
  ...(step.epoch === before.epoch ? {} : { epoch: step.epoch }),
  ...(step.node === before.node ? {} : { node: step.node }),
  ...(step.code === null ? {} : { code: step.code }),
  ...(step.detail === null ? {} : { detail: step.detail }),
});

const placeAfter = (stored: readonly StoredStep[]): Place => {
  let place = NOWHERE;
  for (const { attempt = place.attempt, epoch = place.epoch, node = place.node } of stored) place = { attempt, epoch, node };
  return place;
};

export const addStep = (stored: readonly StoredStep[], step: HistoryStep): readonly StoredStep[] => {
  // Clocks of nodes and database differ a little; a step is never earlier than the one before.
  const next = { ...step, at: Math.max(step.at, stored.at(-1)?.at ?? step.at) };
  if (stored.length < MAX_STEPS) return [...stored, store(next, placeAfter(stored))];
  const [first, , ...newest] = readSteps(stored);
  const kept = [...(first === undefined ? [] : [first]), ...newest, next];
  return kept.map((each, index) => store(each, kept[index - 1] ?? NOWHERE));
};

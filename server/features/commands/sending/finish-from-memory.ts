// Ends commands that this node has in hand, straight from memory: the rules decide about the rows as they were sent, and one statement writes the ends
// that no other change has overtaken. Everything else goes the long way, with a lock.
import { isOpen } from "../../../../protocol/index.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { Outcomes } from "../outcomes.ts";
import type { AckCall } from "../state.ts";
import { type Finished, finishCommands } from "../store/finish.ts";
import { type Effect, endOf, isEnd, type Transition, type Transitions, transitionsOf } from "../transitions.ts";
import type { AfterCommit } from "./after-commit.ts";
import type { UnwrittenSend, UnwrittenSends } from "./unwritten-sends.ts";

export interface FinishDeps {
  readonly db: Db;
  readonly transitions: Transitions;
  readonly outcomes: Pick<Outcomes, "has">;
  readonly afterCommit: Pick<AfterCommit, "changed">;
  readonly unwritten: UnwrittenSends;
  readonly clock: Pick<Clock, "now">;
  /** The relay has events to dispatch. */
  readonly wakeRelay: () => void;
}

interface Planned {
  readonly item: UnwrittenSend;
  readonly effects: readonly Effect[];
  readonly transitions: readonly Transition[];
  readonly finished: Finished;
}

export const createFinish = ({ db, unwritten, transitions, outcomes, afterCommit, clock, wakeRelay }: FinishDeps) => {
  const plan = (calls: readonly AckCall[]): Planned | null => {
    const [call] = calls;
    const item = call === undefined ? undefined : unwritten.find(call.commandId);
    if (call === undefined || item === undefined) return null;
    const { sent, queued } = item;
    if (sent.tenantId !== call.tenantId || sent.deviceId !== call.deviceId || outcomes.has(sent.type)) return null;
    const effects = transitions.plan(
      sent,
      calls.map(({ event }) => event),
      { now: Math.max(clock.now().getTime(), sent.sentAt ?? 0), actorOf: ({ deviceId }) => deviceId },
    );
    const made = transitionsOf(effects);
    const end = made.find(isEnd);
    const row = effects.at(-1)?.after;
    if (end === undefined || row === undefined || isOpen(row.status)) return null;
    return { item, effects, transitions: made, finished: { row: { ...row, revision: queued.revision }, event: endOf(end) } };
  };

  /** Takes the acks of each command; returns the effects, by command, of those that it ended. Committed when it returns. */
  return async (groups: readonly (readonly AckCall[])[]): Promise<ReadonlyMap<string, readonly Effect[]>> => {
    const planned = groups.flatMap((calls) => plan(calls) ?? []);
    if (planned.length === 0) return NOTHING;
    const gone = await finishCommands(
      db,
      planned.map(({ finished }) => finished),
    );
    wakeRelay();
    const done = planned.filter(({ item }) => gone.has(item.queued.commandId));
    for (const { item } of done) unwritten.drop(item);
    afterCommit.changed(done.flatMap((each) => each.transitions));
    return new Map(done.map(({ item, effects }) => [item.queued.commandId, effects]));
  };
};

const NOTHING: ReadonlyMap<string, readonly Effect[]> = new Map();

// How a node lets its agents go: in random order, spread over a window. Who can hand over opens its next session first and is waited for;
// the others are closed and told when to come back.
import { CLOSE } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { type Dismissal, isHeld } from "./dismissal.ts";
import type { Roster } from "./roster.ts";
import { endSession, type Session, send } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";

export interface FarewellDeps {
  readonly roster: Pick<Roster, "all" | "ready">;
  readonly retire: Dismissal["retire"];
  readonly settings: ChannelSettings;
  readonly clock: Clock;
  /** Other nodes that agents may go to. */
  readonly others: () => number;
}

const STEP_MS = 50;
/** Without another node there is nobody to spare; only this one's own work is spread. */
const ALONE_PER_SECOND = 4_000;

/** In how long so many agents are sent away, at the rate at which the other nodes take them in. */
export const drainWindowMs = (
  { connections, others }: { readonly connections: number; readonly others: number },
  { drainWindowMs: least, drainWindowMaxMs: most, drainPerSecond }: ChannelSettings,
): number => {
  if (connections === 0) return 0;
  if (others === 0) return (1_000 * connections) / ALONE_PER_SECOND;
  return Math.max(least, Math.min(most, (1_000 * connections) / (others * drainPerSecond)));
};

const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
const step = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, STEP_MS));
const isoIn = (clock: Clock, ms: number): string => new Date(clock.now().getTime() + ms).toISOString();
/** It may still go by itself. */
const isUnderWay = (session: Session): boolean => session.phase === "proving" || isHeld(session);

/** Takes the drain window and, for those who hand over, the time they are given; less when all have gone. */
export const createFarewell = ({ roster, retire, settings, clock, others }: FarewellDeps) => {
  /** Answers with the wait of an agent that cannot hand over; null for the others, which stay a little longer. */
  const tell = (session: Session, handoff: boolean): number | null => {
    const reconnectAfterMs = handoff ? 0 : Math.round(Math.random() * settings.reconnect.firstWindowMs);
    const closeAt = isoIn(clock, handoff ? settings.handoffMs : 0);
    send(session, { op: "drain", data: { reason: "shutdown", handoff, reconnectAfterMs, closeAt } }, clock);
    session.phaseAt = clock.elapsed();
    return handoff ? null : Math.max(1, Math.ceil(reconnectAfterMs / 1_000));
  };

  return async (): Promise<void> => {
    const hasHeirs = others() > 0;
    const waiting = shuffled([...roster.ready.values()]);
    const total = waiting.length;
    const windowMs = drainWindowMs({ connections: total, others: others() }, settings);
    const startMs = clock.elapsed();
    let silenced: Session[] = [];

    // From here on it claims nothing more; what was claimed is written first, so that no command is left between two sessions.
    const silence = (session: Session): void => {
      if (session.phase !== "ready") return;
      session.phase = "draining";
      session.phaseAt = clock.elapsed();
      silenced.push(session);
    };
    const tellSilenced = (): void => {
      const waits = new Map<Session, number>();
      for (const session of silenced) {
        const waitSeconds = session.pumping ? null : tell(session, hasHeirs && session.handsOver);
        if (waitSeconds !== null) waits.set(session, waitSeconds);
      }
      silenced = silenced.filter(({ pumping }) => pumping);
      void retire([...waits.keys()], CLOSE.drain, waits);
    };

    while (waiting.length > 0) {
      const share = windowMs === 0 ? 1 : Math.min(1, (clock.elapsed() - startMs + STEP_MS) / windowMs);
      waiting.splice(0, Math.ceil(total * share) - (total - waiting.length)).forEach(silence);
      tellSilenced();
      if (waiting.length > 0) await step();
    }
    const untilMs = clock.elapsed() + settings.handoffMs;
    while ([...roster.all].some(isUnderWay) && clock.elapsed() < untilMs) {
      // Those whose hello was judged meanwhile.
      [...roster.ready.values()].forEach(silence);
      tellSilenced();
      await step();
    }
    await retire([...roster.all].filter(isHeld), CLOSE.drain);
    // Whoever said goodbye has somewhere else to go, or nowhere.
    for (const session of roster.all) endSession(session, session.phase === "leaving" ? CLOSE.normal : CLOSE.drain);
  };
};

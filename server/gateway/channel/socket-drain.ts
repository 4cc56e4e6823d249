// Socket drain: a node that shuts down sends its agents away, in random order and spread over a window. An agent that can hand over opens its
// next session first, and the node waits for it; the others are closed and told when to come back.
import { CLOSE } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { CommandDelivery } from "../../core/ports/delivery.ts";
import { type AgentSession, endSession, holdsPresence, send } from "./session.ts";
import type { SessionCloser } from "./session-closer.ts";
import type { SessionRegistry } from "./session-registry.ts";
import type { ChannelSettings } from "./settings.ts";

export interface SocketDrainDeps {
  readonly registry: Pick<SessionRegistry, "open" | "ready">;
  readonly retire: SessionCloser["retire"];
  readonly delivery: Pick<CommandDelivery, "writeSent" | "holds">;
  readonly settings: ChannelSettings;
  readonly clock: Clock;
  /** The number of other nodes that agents can go to. */
  readonly others: () => number;
}

const STEP_MS = 50;
/** Without another node the window only spreads this node's own work. */
const ALONE_PER_SECOND = 4_000;

/** The time over which this many agents are sent away, at the rate at which the other nodes accept them. */
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
/** The agent may still leave by itself. */
const mayLeave = (session: AgentSession): boolean => session.phase === "proving" || holdsPresence(session);

/** Takes the window, and after it up to `handoffMs` for agents that hand over; less once all have gone. */
export const createSocketDrain = ({ registry, retire, delivery, settings, clock, others }: SocketDrainDeps) => {
  /** Returns the wait of an agent that cannot hand over; null for the others, whose sockets stay open a little longer. */
  const tell = (session: AgentSession, handoff: boolean): number | null => {
    const reconnectAfterMs = handoff ? 0 : Math.round(Math.random() * settings.reconnect.firstWindowMs);
    const closeAt = isoIn(clock, handoff ? settings.handoffMs : 0);
    send(session, { op: "drain", data: { reason: "shutdown", handoff, reconnectAfterMs, closeAt } }, clock);
    session.phaseAt = clock.elapsed();
    return handoff ? null : Math.max(1, Math.ceil(reconnectAfterMs / 1_000));
  };

  return async (): Promise<void> => {
    const canHandOver = others() > 0;
    const waiting = shuffled([...registry.ready.values()]);
    const total = waiting.length;
    const windowMs = drainWindowMs({ connections: total, others: others() }, settings);
    const startMs = clock.elapsed();
    let silenced: AgentSession[] = [];

    // A silenced session claims nothing more, but first sends what it has claimed and writes what it has sent, so no command is lost between two sessions or
    // sent by both.
    const silence = (session: AgentSession): void => {
      if (session.phase !== "ready") return;
      session.phase = "draining";
      session.phaseAt = clock.elapsed();
      delivery.writeSent(session.deviceId);
      silenced.push(session);
    };
    const isBusy = ({ pushing, deviceId }: AgentSession): boolean => pushing || delivery.holds(deviceId);
    const tellSilenced = (): void => {
      const waits = new Map<AgentSession, number>();
      const busy = silenced.filter(isBusy);
      for (const session of silenced) {
        const waitSeconds = busy.includes(session) ? null : tell(session, canHandOver && session.handsOver);
        if (waitSeconds !== null) waits.set(session, waitSeconds);
      }
      silenced = busy;
      void retire([...waits.keys()], CLOSE.drain, waits);
    };

    while (waiting.length > 0) {
      const share = windowMs === 0 ? 1 : Math.min(1, (clock.elapsed() - startMs + STEP_MS) / windowMs);
      waiting.splice(0, Math.ceil(total * share) - (total - waiting.length)).forEach(silence);
      tellSilenced();
      if (waiting.length > 0) await step();
    }
    const untilMs = clock.elapsed() + settings.handoffMs;
    while ([...registry.open].some(mayLeave) && clock.elapsed() < untilMs) {
      // Sessions whose hello was accepted meanwhile.
      [...registry.ready.values()].forEach(silence);
      tellSilenced();
      await step();
    }
    await retire([...registry.open].filter(holdsPresence), CLOSE.drain);
    // An agent that said goodbye needs no word about when to come back.
    for (const session of registry.open) endSession(session, session.phase === "leaving" ? CLOSE.normal : CLOSE.drain);
  };
};

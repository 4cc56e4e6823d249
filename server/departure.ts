// How this node leaves without anybody missing it: it says so, waits until it is believed, and only then sends its callers and agents elsewhere.
import type { Doors } from "./doors.ts";
import type { Listener } from "./gateway/uws/listen.ts";
import type { Log } from "./platform/log.ts";
import type { Rooms } from "./rooms.ts";

export interface DepartureDeps {
  readonly doors: Pick<Doors, "drain" | "hub">;
  readonly rooms: Pick<Rooms, "admin" | "commands">;
  /** The public one first; none before they are open. */
  readonly listeners: () => readonly Listener[];
  readonly noticeMs: number;
  /** For how long connections that nobody uses may still be used. */
  readonly lingerMs?: number | undefined;
  readonly log: Log;
}

export interface Leave {
  /** Another process takes new connections on the same ports already, so there is nobody to give notice to. */
  readonly replaced?: boolean;
}

/** A browser's preflight and a balancer's probe need a moment even where there is no other node. */
const ALONE_NOTICE_MS = 200;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Once, however often it is asked; never rejects. What is open stays open: closing it is the lifecycle's. */
export const createDeparture = ({ doors, rooms, listeners, noticeMs, lingerMs, log }: DepartureDeps): ((how?: Leave) => Promise<void>) => {
  const isAlone = (): boolean => rooms.admin.liveNodes() <= 1;

  const go = async ({ replaced = false }: Leave): Promise<void> => {
    doors.drain();
    const [front] = listeners();
    if (front === undefined) return;
    front.leave(isAlone() && !replaced ? 0 : lingerMs);
    if (replaced) for (const listener of listeners()) listener.stopAccepting();
    const told = rooms.admin.tell().catch((error: unknown) => log.warn({ error }, "could not tell the other nodes that this one leaves"));
    if (!replaced) await pause(isAlone() ? ALONE_NOTICE_MS : noticeMs);
    await Promise.race([told, pause(ALONE_NOTICE_MS)]);
    // Those who wait come back at once, hence not before others are the ones who take them.
    rooms.commands.endWaits();
    await doors.hub.letGo();
  };

  let leaving: Promise<void> | null = null;
  return (how = {}) => {
    leaving ??= go(how).catch((error: unknown) => log.error({ error }, "could not leave in good order"));
    return leaving;
  };
};

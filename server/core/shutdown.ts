// Graceful shutdown, the drain: the node says that it leaves, waits until balancers and other nodes believe it, and only then sends its callers and
// agents elsewhere.

export interface ShutdownDeps {
  /** Makes the node not ready; from now on it refuses new agents. */
  readonly drain: () => void;
  /** Sends every agent to another node. */
  readonly drainSockets: () => Promise<void>;
  /** Answers the calls that wait for something. */
  readonly endWaits: () => void;
  readonly cluster: {
    liveNodes(): number;
    /** Tells the other nodes that this one drains. */
    announce(): Promise<void>;
  };
  /** The public one first; none before they are open. */
  readonly listeners: () => readonly DrainableListener[];
  readonly noticeMs: number;
  /** How long idle connections may still be used. */
  readonly lingerMs?: number | undefined;
  readonly log: Record<"warn" | "error", (fields: object, message: string) => void>;
}

export interface DrainableListener {
  leave(lingerMs?: number): void;
  stopAccepting(): void;
}

export interface ShutdownOptions {
  /** Another process already accepts new connections on the same ports, so nobody needs notice. */
  readonly replaced?: boolean;
}

/** A browser's preflight and a balancer's probe need a moment even if there is no other node. */
const ALONE_NOTICE_MS = 200;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs once, however often it is called; never rejects. The lifecycle closes what is open, afterwards. */
export const createShutdown = ({
  drain,
  drainSockets,
  endWaits,
  cluster,
  listeners,
  noticeMs,
  lingerMs,
  log,
}: ShutdownDeps): ((options?: ShutdownOptions) => Promise<void>) => {
  const isAlone = (): boolean => cluster.liveNodes() <= 1;

  const run = async ({ replaced = false }: ShutdownOptions): Promise<void> => {
    drain();
    const [front] = listeners();
    if (front === undefined) return;
    front.leave(isAlone() && !replaced ? 0 : lingerMs);
    if (replaced) for (const listener of listeners()) listener.stopAccepting();
    const announced = cluster.announce().catch((error: unknown) => log.warn({ error }, "could not tell the other nodes that this one leaves"));
    if (!replaced) await pause(isAlone() ? ALONE_NOTICE_MS : noticeMs);
    await Promise.race([announced, pause(ALONE_NOTICE_MS)]);
    // Callers that wait come back at once: release them only when other nodes are there to take them.
    endWaits();
    await drainSockets();
  };

  let running: Promise<void> | null = null;
  return (options = {}) => {
    running ??= run(options).catch((error: unknown) => log.error({ error }, "could not drain in good order"));
    return running;
  };
};

// Graceful shutdown: the node announces that it drains, waits until load balancers and other nodes have noticed, and only then releases its waiting calls
// and sends its agents to other nodes.

export interface ShutdownDeps {
  /** Makes the node not ready; from now on it refuses new agents. */
  readonly drain: () => void;
  /** Sends every agent to another node. */
  readonly drainSockets: () => Promise<void>;
  /** Answers the calls that wait for something. */
  readonly endWaits: () => void;
  readonly cluster: {
    liveNodes(): number;
    /** Announces to the other nodes that this one drains. */
    announce(): Promise<void>;
  };
  /** The public one first; none before they are open. */
  readonly listeners: () => readonly DrainableListener[];
  readonly noticeMs: number;
  /** How long clients may still use idle connections. */
  readonly lingerMs?: number | undefined;
  readonly log: Record<"warn" | "error", (fields: object, message: string) => void>;
}

export interface DrainableListener {
  leave(lingerMs?: number): void;
  stopAccepting(): void;
}

export interface ShutdownOptions {
  /** Another process already accepts new connections on the same ports, so the drain skips its notice. */
  readonly replaced?: boolean;
}

/** Without other nodes, the time for a browser's preflight and a load balancer's probe. */
const ALONE_NOTICE_MS = 200;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Repeated calls share one run, which never rejects. Afterwards the lifecycle closes what is open. */
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
    const announced = cluster.announce().catch((error: unknown) => log.warn({ error }, "could not announce to the other nodes that this one drains"));
    if (!replaced) await pause(isAlone() ? ALONE_NOTICE_MS : noticeMs);
    await Promise.race([announced, pause(ALONE_NOTICE_MS)]);
    // Waiting callers retry at once, so we release them only now that other nodes take them.
    endWaits();
    await drainSockets();
  };

  let running: Promise<void> | null = null;
  return (options = {}) => {
    running ??= run(options).catch((error: unknown) => log.error({ error }, "the drain failed"));
    return running;
  };
};

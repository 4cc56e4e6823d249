// Closes the parts of the app in the reverse order of opening, once. The listeners open last and close first.
export interface Closable {
  close(): Promise<void> | void;
}

export interface Lifecycle {
  /** Registers a part to be closed; returns it. */
  use<T extends Closable>(name: string, part: T): T;
  /** Fires when the app begins to close; loops and waits end on it. */
  readonly signal: AbortSignal;
  readonly names: readonly string[];
  close(): Promise<void>;
}

export interface LifecycleDeps {
  /** Reports a part that takes longer to close, and goes on without it. */
  readonly partTimeoutMs: number;
  readonly onStep?: (name: string, outcome: "closed" | "failed" | "timed out", error?: unknown) => void;
}

export const createLifecycle = ({ partTimeoutMs, onStep }: LifecycleDeps): Lifecycle => {
  const parts: { readonly name: string; readonly part: Closable }[] = [];
  const controller = new AbortController();
  let closing: Promise<void> | null = null;

  const closePart = async ({ name, part }: { name: string; part: Closable }): Promise<void> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"timed out">((resolve) => {
      timer = setTimeout(() => resolve("timed out"), partTimeoutMs);
    });
    try {
      const outcome = await Promise.race([Promise.resolve(part.close()).then(() => "closed" as const), late]);
      onStep?.(name, outcome);
    } catch (error) {
      onStep?.(name, "failed", error);
    } finally {
      clearTimeout(timer);
    }
  };

  return {
    use: (name, part) => {
      parts.push({ name, part });
      return part;
    },
    signal: controller.signal,
    get names() {
      return parts.map(({ name }) => name);
    },
    close: () => {
      closing ??= (async () => {
        controller.abort();
        for (const entry of [...parts].reverse()) await closePart(entry);
      })();
      return closing;
    },
  };
};

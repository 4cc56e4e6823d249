// An AbortController that is created on first use of its signal: few calls use theirs, and creating one costs as much as a small answer.
export interface LazyAbort {
  readonly aborted: boolean;
  /** Created on first use; always the same. */
  readonly signal: AbortSignal;
  /** Runs `react` on abort, at once if that has happened. The result unregisters it. */
  onAbort(react: () => void): () => void;
}

export interface LazyAbortController extends LazyAbort {
  abort(): void;
}

const NOTHING_TO_DROP = (): void => undefined;

class Lazy implements LazyAbortController {
  aborted = false;
  #controller: AbortController | null = null;
  #reactions: Set<() => void> | null = null;
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.aborted) this.#controller.abort();
    return this.#controller.signal;
  }
  onAbort(react: () => void): () => void {
    if (this.aborted) {
      react();
      return NOTHING_TO_DROP;
    }
    this.#reactions ??= new Set();
    this.#reactions.add(react);
    return () => void this.#reactions?.delete(react);
  }
  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#controller?.abort();
    const reactions = this.#reactions ?? [];
    this.#reactions = null;
    for (const react of reactions) react();
  }
}

export const createLazyAbort = (): LazyAbortController => new Lazy();

/** Wraps a signal that exists already. */
export const lazyAbortOf = (signal: AbortSignal): LazyAbort => ({
  get aborted() {
    return signal.aborted;
  },
  signal,
  onAbort: (react) => {
    if (signal.aborted) {
      react();
      return NOTHING_TO_DROP;
    }
    signal.addEventListener("abort", react, { once: true });
    return () => signal.removeEventListener("abort", react);
  },
});

/** Aborts with either. AbortSignal.any would leak: Node keeps its result, and all that its listeners hold, until it aborts. */
export const eitherOf = (one: AbortSignal, other: AbortSignal): AbortSignal => {
  const both = createLazyAbort();
  for (const signal of [one, other]) lazyAbortOf(signal).onAbort(() => both.abort());
  return both.signal;
};

// An AbortController that is only made when somebody asks for its signal: few calls ever look at theirs, and a signal costs as much as a small answer.
export interface OffSwitch {
  readonly aborted: boolean;
  /** For whoever waits; the same at each time of asking. */
  readonly signal: AbortSignal;
}

export interface OwnedOffSwitch extends OffSwitch {
  abort(): void;
}

class Lazy implements OwnedOffSwitch {
  aborted = false;
  #controller: AbortController | null = null;
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.aborted) this.#controller.abort();
    return this.#controller.signal;
  }
  abort(): void {
    this.aborted = true;
    this.#controller?.abort();
  }
}

export const createOffSwitch = (): OwnedOffSwitch => new Lazy();

/** For a signal that is there already. */
export const switchOf = (signal: AbortSignal): OffSwitch => ({
  get aborted() {
    return signal.aborted;
  },
  signal,
});

// A look that many ask for: at once, then not again for a moment, and once more after it for all who asked meanwhile.
export interface CoalescedOptions {
  readonly pauseMs: number;
  readonly onError: (error: unknown) => void;
}

export const coalesced = (run: () => Promise<void>, { pauseMs, onError }: CoalescedOptions): (() => void) => {
  let looking = false;
  let again = false;
  const rest = (): void => {
    looking = false;
    if (!again) return;
    again = false;
    ask();
  };
  const ask = (): void => {
    if (looking) {
      again = true;
      return;
    }
    looking = true;
    void run()
      .catch(onError)
      .finally(() => setTimeout(rest, pauseMs).unref());
  };
  return ask;
};

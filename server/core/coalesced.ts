// Coalesces requests to run something: it runs at once, pauses, and runs once more for all requests that came meanwhile.
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

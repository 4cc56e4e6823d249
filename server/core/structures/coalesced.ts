// Coalesces requests to run something: it runs at once, pauses, and runs once more for all requests that came meanwhile.
export interface CoalescedOptions {
  readonly pauseMs: number;
  readonly onError: (error: unknown) => void;
}

export const coalesced = (run: () => Promise<void>, { pauseMs, onError }: CoalescedOptions): (() => void) => {
  let running = false;
  let again = false;
  const rest = (): void => {
    running = false;
    if (!again) return;
    again = false;
    ask();
  };
  const ask = (): void => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    void run()
      .catch(onError)
      .finally(() => setTimeout(rest, pauseMs).unref());
  };
  return ask;
};

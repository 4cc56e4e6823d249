// The page's one feed of events, for the shell that keeps it running and for screens that show events themselves.
import { useEffect } from "react";
import { keepFresh } from "./freshness.ts";
import type { Listener } from "./live.ts";

let feed: ReturnType<typeof keepFresh> | null = null;
export const useFeed = (): ReturnType<typeof keepFresh> => {
  feed ??= keepFresh();
  return feed;
};

/** Calls `listener`, which must stay the same, with the events of each 100 ms while the screen is open. */
export const useEvents = (listener: Listener): void => {
  const listen = useFeed();
  useEffect(() => {
    const stop = listen(listener);
    return () => void stop();
  }, [listen, listener]);
};

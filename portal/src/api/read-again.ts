// Reads again what a screen shows when events concern it that no line of freshness.ts names.
import type { LiveEvent } from "@mooring/client";
import type { QueryFilters } from "@tanstack/react-query";
import { useState } from "react";
import { queryClient } from "./client.ts";
import { useEvents } from "./events.ts";
import { readAgain } from "./outdated.ts";
import { createThrottle } from "./throttle.ts";

/** A constant of the screen's module, so that it stays the same. */
export interface ReadAgain {
  /** Whether these events concern the screen. */
  readonly after: (events: readonly LiveEvent[]) => boolean;
  readonly reads: readonly QueryFilters[];
  /** How long further events are gathered for the same read. */
  readonly waitMs: () => number;
}

/** Whether one of the events stands in the log of events; the others only keep pages fresh. */
export const isStored = (events: readonly LiveEvent[]): boolean => events.some(({ id }) => id !== null);

export const useReadAgain = ({ after, reads, waitMs }: ReadAgain): void => {
  const [listener] = useState(() => {
    const readSoon = createThrottle(() => {
      for (const read of reads) readAgain(queryClient, read);
    }, waitMs);
    return (events: readonly LiveEvent[]): void => {
      if (after(events)) readSoon();
    };
  });
  useEvents(listener);
};

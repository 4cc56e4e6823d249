// The tenant's events, by one stream per browser and tenant: the tab that holds the lock has the stream and passes its events on to the others.
// A hidden tab lets go of the stream and reads everything again when somebody looks at it.
import type { LiveEvent } from "@mooring/client";
import { clockCorrection, correctClock, gatewayNow } from "../ui/clock.ts";
import { calls, mooring, note, pageTenant } from "./client.ts";
import { createStore } from "./store.ts";

type Link = "connecting" | "live" | "paused";
/** `paused`: nobody looks at this page. */
export const live = createStore<{
  readonly link: Link;
  /** Since when a page that was live hears nothing. */
  readonly lostAt: number | null;
}>({ link: "connecting", lostAt: null });

/** What waits for the person: alerts that are open and that nobody has taken on; null if they see none. */
export const badges = createStore<{ readonly alerts: number | null }>({ alerts: null });
const BADGES = "stream.badges";

export type Listener = (events: readonly LiveEvent[]) => void;
type Message =
  | { readonly kind: "event"; readonly event: LiveEvent }
  | { readonly kind: "link"; readonly link: Link; readonly clock?: number }
  | { readonly kind: "ask" };

const COLLECT_MS = 100;
/** Pages of one tenant share its stream. */
const nameOf = (): string => `mooring-live ${pageTenant() ?? ""}`;
/** Both begin a stream: everything that was read before may be out of date. */
export const isBeginning = ({ type }: LiveEvent): boolean => type === "stream.position" || type === "stream.gap";

const setLink = (link: Link): void => {
  const { link: before, lostAt } = live.get();
  if (before !== link) live.set({ link, lostAt: link === "connecting" ? (before === "live" ? gatewayNow() : lostAt) : null });
};

interface Sinks {
  readonly event: (event: LiveEvent) => void;
  readonly link: (link: Link) => void;
  readonly end: () => void;
}

/** Ends by the signal, or by itself where no further try can help: most often because nobody is signed in any more. */
const stream = (from: string | null, { event, link, end }: Sinks, signal: AbortSignal): void => {
  const { unsubscribe } = mooring.live.watch.subscribe(
    { lastEventId: from, badges: true },
    {
      onStarted: () => link("live"),
      onData: ({ data }) => event(data),
      onConnectionStateChange: ({ state }) => link(state === "pending" ? "live" : "connecting"),
      onError: (error) => {
        link("connecting");
        note(error);
        end();
      },
    },
  );
  signal.addEventListener("abort", unsubscribe);
};

/** Holds the stream of this browser, or waits until it may. Without locks (plain http on a network address) every visible tab has its own. */
const lead = async (signal: AbortSignal, work: () => void): Promise<void> => {
  const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  if (navigator.locks === undefined) return work();
  await navigator.locks
    .request(nameOf(), { signal }, () => {
      work();
      return ended;
    })
    .catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
};

const createFeed = () => {
  const listeners = new Set<Listener>();
  const channel = new BroadcastChannel(nameOf());
  let collected: LiveEvent[] = [];
  let lastEventId: string | null = null;
  let leads = false;
  let waiting: LiveEvent | null = null;

  const flush = (): void => {
    const events = collected;
    collected = [];
    for (const listener of listeners) listener(events);
  };
  const receive = (event: LiveEvent): void => {
    if (event.type === BADGES) {
      waiting = event;
      badges.set({ alerts: typeof event.data["alerts"] === "number" ? event.data["alerts"] : null });
      return;
    }
    if (isBeginning(event)) correctClock(Date.parse(event.at) - Date.now());
    lastEventId = event.id ?? lastEventId;
    if (document.hidden) return;
    if (collected.length === 0) setTimeout(flush, COLLECT_MS);
    collected.push(event);
  };
  const send = (message: Message): void => channel.postMessage(message);
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.kind === "ask") {
      if (!leads) return;
      send({ kind: "link", link: live.get().link, clock: clockCorrection() });
      if (waiting !== null) send({ kind: "event", event: waiting });
      return;
    }
    if (document.hidden) return;
    if (data.kind === "event") receive(data.event);
    else {
      if (data.clock !== undefined) correctClock(data.clock);
      setLink(data.link);
    }
  };
  const begin = (signal: AbortSignal, end: () => void): void => {
    leads = true;
    const link = (now: Link): void => {
      setLink(now);
      send({ kind: "link", link: now });
    };
    const event = (each: LiveEvent): void => {
      receive(each);
      send({ kind: "event", event: each });
    };
    stream(lastEventId, { event, link, end }, signal);
  };
  const leave = (): void => {
    leads = false;
  };
  return { listeners, begin, leave, ask: () => send({ kind: "ask" }) };
};

/** Starts once per page. Answers the function that adds a listener. */
export const startFeed = (): ((listener: Listener) => () => void) => {
  const feed = createFeed();
  let visit: AbortController | null = null;
  const look = (): void => {
    visit?.abort();
    visit = null;
    feed.leave();
    if (document.hidden) {
      setLink("paused");
      return;
    }
    const controller = new AbortController();
    visit = controller;
    const { signal } = controller;
    const end = (): void => {
      controller.abort();
      if (visit === controller) feed.leave();
    };
    setLink("connecting");
    feed.ask();
    void lead(signal, () => feed.begin(signal, end));
  };
  let wasSignedOut = false;
  calls.follow(() => {
    const { signedOut } = calls.get();
    if (wasSignedOut && !signedOut) look();
    wasSignedOut = signedOut;
  });
  document.addEventListener("visibilitychange", look);
  look();
  return (listener) => {
    feed.listeners.add(listener);
    return () => feed.listeners.delete(listener);
  };
};

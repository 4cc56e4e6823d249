// A browser context with its page, in which visitors follow each other. A new one costs twice as much: its process starts, and fetches and compiles the console.
import type { Browser, BrowserContext, BrowserContextOptions, CDPSession, Page } from "playwright-core";
import { followCalls } from "./explain.ts";

export interface Problem {
  /** `answer`: a call or file that was answered with an error, which a test may have provoked. `policy`: what the page's policy did not allow. */
  readonly kind: "console" | "error" | "policy" | "answer";
  readonly text: string;
}

export interface Seat {
  readonly context: BrowserContext;
  readonly page: Page;
  /** The paths of its calls that have not ended. */
  readonly unanswered: () => readonly string[];
  /** Hears of what goes wrong on the pages. */
  report: (problem: Problem) => void;
  /** Makes it as it was when it was new. `false` if it cannot: then nobody may follow. */
  clear(): Promise<boolean>;
}

/** Of each wait in a page. */
export const BOUND_MS = 20_000;
const REPORT = "reportPolicyViolation";
const WATCH = `addEventListener("securitypolicyviolation", (event) => ${REPORT}(event.violatedDirective + " " + event.blockedURI + " at " + event.sourceFile));`;
const FORGET = "localStorage.clear(); sessionStorage.clear(); name = '';";

const VIEWPORT = { width: 1_440, height: 900 };
const REDUCED_MOTION = "reduce";
const MEDIA = { media: null, colorScheme: "light", reducedMotion: REDUCED_MOTION, forcedColors: "none", contrast: "no-preference" } as const;

/** Calls whose effects stay, or are not worth the code that ends them. Whoever makes one is the last visitor of this context. */
const LASTING = [
  ...["on", "once", "route", "routeFromHAR", "routeWebSocket", "newPage", "newCDPSession", "addInitScript", "addLocatorHandler"],
  ...["exposeBinding", "exposeFunction", "grantPermissions", "setDefaultNavigationTimeout", "setDefaultTimeout", "setExtraHTTPHeaders"],
  ...["setGeolocation", "setHTTPCredentials", "setOffline"],
  // Of the clock, the keys and the buttons.
  ...["fastForward", "install", "pauseAt", "resume", "runFor", "setFixedTime", "setSystemTime", "down"],
];

const watch = async (context: BrowserContext, report: (problem: Problem) => void): Promise<void> => {
  context.on("console", (message) => {
    const text = `${message.text()} ${message.location().url}`;
    // Chromium says so of loopback, too, when a container of another test gets its network.
    if (text.includes("net::ERR_NETWORK_CHANGED")) return;
    if (message.type() === "error") report({ kind: text.startsWith("Failed to load resource") ? "answer" : "console", text });
  });
  context.on("weberror", (error) => report({ kind: "error", text: error.error().stack ?? error.error().message }));
  await context.exposeFunction(REPORT, (text: string) => report({ kind: "policy", text }));
  await context.addInitScript({ content: WATCH });
};

/** Calls `wear` when a visitor does what stays. */
const watchWear = (context: BrowserContext, page: Page, baseURL: string, wear: () => void): void => {
  context.on("page", wear);
  page.on("close", wear);
  page.on("crash", wear);
  page.on("download", wear);
  // What other origins keep is out of reach.
  page.on("framenavigated", (frame) => {
    if (/^https?:/.test(frame.url()) && !frame.url().startsWith(`${baseURL}/`)) wear();
  });
  for (const owner of [context, page, page.clock, page.keyboard, page.mouse])
    for (const name of LASTING) {
      const call = Reflect.get(owner, name);
      if (call === undefined) continue;
      Reflect.set(owner, name, (...args: unknown[]) => {
        wear();
        return Reflect.apply(call, owner, args);
      });
    }
};

export const openSeat = async (browser: Browser, baseURL: string, options: BrowserContextOptions): Promise<Seat> => {
  const context = await browser.newContext({ baseURL, viewport: VIEWPORT, locale: "en-GB", timezoneId: "UTC", reducedMotion: REDUCED_MOTION, ...options });
  context.setDefaultTimeout(BOUND_MS);
  await watch(context, (problem) => seat.report(problem));
  const page = await context.newPage();
  const openDebugger = context.newCDPSession.bind(context, page);
  // Before the seat watches for listeners, as these wear out nothing.
  const unanswered = followCalls(page);
  let isWorn = false;
  watchWear(context, page, baseURL, () => {
    isWorn = true;
  });

  let session: CDPSession | undefined;
  const restore = async (): Promise<void> => {
    session ??= await openDebugger();
    // Ends the console's streams. From a page of another origin the next visitor would come into a new process.
    await page.goto("/livez");
    await Promise.all([
      page.evaluate(FORGET),
      session.send("Storage.clearDataForOrigin", { origin: new URL(baseURL).origin, storageTypes: "all" }),
      session.send("Page.resetNavigationHistory"),
      context.clearCookies(),
      page.mouse.move(0, 0),
      page.emulateMedia(MEDIA),
      page.setViewportSize(VIEWPORT),
    ]);
  };
  const clear = async (): Promise<boolean> => {
    // The gateway may have ended before its visitors.
    if (!isWorn) await restore().catch(() => context.close());
    return !isWorn;
  };
  const seat: Seat = { context, page, unanswered, report: () => undefined, clear };
  return seat;
};

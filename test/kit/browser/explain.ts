// Adds to the error of a failed test what its visitors see and wait for by then: the log of a run is all that is left of a failure that comes once in a hundred runs.
import type { Page, Request } from "playwright-core";
import { withTimeout } from "../../../server/platform/timeout.ts";

const BOUND_MS = 3_000;
const WORDS = 300;
/** Never answered in full. */
const FEED = "/trpc/live.watch";
/** What is in front, then what is behind it. */
const SHOWN = `[...document.querySelectorAll("dialog[open]"), document.querySelector("main") ?? document.body].map(({ innerText }) => innerText).join(" | ")`;

/** Follows the calls of a page that have not ended, by their paths. */
export const followCalls = (page: Page): (() => readonly string[]) => {
  const open = new Set<Request>();
  const end = (request: Request): void => void open.delete(request);
  page.on("request", (request) => open.add(request));
  page.on("requestfinished", end);
  page.on("requestfailed", end);
  return () => [...open].map((request) => new URL(request.url()).pathname).filter((path) => path !== FEED);
};

export interface Seen {
  readonly page: Page;
  readonly unanswered: () => readonly string[];
}

const wordsOf = async ({ page, unanswered }: Seen): Promise<string> => {
  const text = await withTimeout(page.evaluate<string>(SHOWN), BOUND_MS, "the page does not answer").catch(({ message }: Error) => message);
  const waits = unanswered().join(" and ");
  const { pathname, search } = new URL(page.url());
  return `${pathname}${search}${waits === "" ? "" : ` waits for ${waits}`}: ${text.replaceAll(/\s+/gu, " ").slice(0, WORDS)}`;
};

/** The error of a failed test, as vitest keeps it for its reporters. */
interface Failed {
  message: string;
}

export const explain = async (errors: readonly Failed[], seen: readonly Seen[]): Promise<void> => {
  const [error] = errors;
  if (error === undefined || seen.length === 0) return;
  error.message += `\nThe page was ${(await Promise.all(seen.map(wordsOf))).join("\nAnother was ")}`;
};

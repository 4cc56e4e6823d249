// Chromium for test files. Each visitor has cookies of their own, and a list of everything that went wrong on their pages.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { TestContext } from "vitest";
import { withTimeout } from "../../../server/platform/timeout.ts";
import { explain } from "./explain.ts";
import { layoutFindings } from "./layout.ts";
import { BOUND_MS, openSeat, type Problem, type Seat } from "./seat.ts";
import { onceAWorker } from "./worker-end.ts";

export interface Visitor {
  readonly context: BrowserContext;
  /** The first page; `context.newPage()` opens more. */
  readonly page: Page;
  readonly problems: readonly Problem[];
  /** Follows a new sign-in link, and is then at `path`. Without a tenant the session works in all of the person's. */
  signIn(userId: string, options?: { readonly tenantId?: string; readonly path?: string }): Promise<void>;
  /** Goes to `path` within the console, as its links do: what the page has loaded and read stays, which costs a tenth of a load. */
  go(path: string): Promise<void>;
  close(): Promise<void>;
}

/** The first is Chromium without its own windows, which cost more than the pages in them. */
const PROGRAMS = ["chromium-headless-shell", "chromium"];

const executablePath = (): string => {
  const folders = ["/usr/bin", ...(process.env["PATH"] ?? "").split(delimiter)];
  const found = PROGRAMS.flatMap((program) => folders.map((folder) => join(folder, program))).find(existsSync);
  if (found === undefined) throw new Error(`${PROGRAMS[0]} is missing; node test/kit/setup/ensure-packages.mjs ${PROGRAMS[0]} installs it`);
  return found;
};

/** The console's router, which leaves itself in the page. By then the screen of `path` is drawn, although it may still read. */
const goWithin = (page: Page, path: string): Promise<void> => {
  // A wait of the browser's driver would need what the page's policy forbids.
  const shown = page.evaluate<void>(`(async () => {
    const router = __TSR_ROUTER__;
    await router.navigate({ href: ${JSON.stringify(path)} });
    while (router.state.status !== "idle" || router.state.resolvedLocation !== router.state.location) await new Promise(requestAnimationFrame);
  })()`);
  return withTimeout(shown, BOUND_MS, `the console does not go to ${path}`);
};

/** The gateway under test: a world, or a process with the command line's links. */
export interface Gateway {
  readonly url: string;
  readonly app: { signInLink(person: { readonly userId: string; readonly tenantId?: string | undefined }): Promise<{ readonly url: string }> };
}

const browserOfWorker = onceAWorker("browser", async () => {
  const browser = await chromium.launch({ executablePath: executablePath(), args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  return { value: browser, end: () => browser.close() };
});

/** `fresh`: nobody was in this context before, so that the browser has nothing of the console yet. */
interface VisitorOptions extends BrowserContextOptions {
  readonly fresh?: boolean;
}

/** The visitors of this one gateway. With `keeps` a visitor without wishes takes the seat of one who left. */
export const visitorsOf = (browser: Browser, world: Gateway, { keeps = false } = {}) => {
  const taken = new Map<Seat, () => Promise<void>>();
  const free: Seat[] = [];

  const visitor = async (options?: VisitorOptions): Promise<Visitor> => {
    const problems: Problem[] = [];
    const isKept = keeps && options === undefined;
    const seat = (isKept ? free.pop() : undefined) ?? (await openSeat(browser, world.url, options ?? {}));
    seat.report = (problem) => void problems.push(problem);
    const close = async (): Promise<void> => {
      if (!taken.delete(seat)) return;
      seat.report = () => undefined;
      if (isKept && (await seat.clear())) free.push(seat);
      else await seat.context.close();
    };
    taken.set(seat, close);
    const { context, page } = seat;
    return {
      context,
      page,
      problems,
      signIn: async (userId, { tenantId, path = "/" } = {}) => {
        const { url } = await world.app.signInLink({ userId, tenantId });
        // Not until the network is idle: the console's stream of events never ends.
        await page.goto(`${url}&return_to=${encodeURIComponent(path)}`, { waitUntil: "domcontentloaded" });
      },
      go: (path) => goWithin(page, path),
      close,
    };
  };

  /** All visitors leave. */
  const leave = async (): Promise<void> => {
    await Promise.all([...taken.values()].map((close) => close()));
  };
  const close = async (): Promise<void> => {
    await Promise.all([...taken.keys(), ...free].map(({ context }) => context.close()));
  };
  /** For after each test. */
  const explainFailure = ({ result }: TestContext["task"]): Promise<void> => explain(result?.errors ?? [], [...taken.keys()]);
  return { visitor, leave, close, explainFailure };
};
export type Chromium = ReturnType<typeof visitorsOf>;

/** The files of a worker share the browser, which ends with the worker. */
export const openChromium = async (world: Gateway): Promise<Chromium> => visitorsOf(await browserOfWorker(), world, { keeps: true });

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** The rules that look at colours; all others find the same in light and dark. */
const COLOR_RULES = ["color-contrast", "link-in-text-block"];
let axe: Promise<string> | undefined;

/** What makes the page as it is now hard to use for some people: `rule: element (how to fix it)`. */
export const accessFindings = async (page: Page, rules: readonly string[] = RULES): Promise<readonly string[]> => {
  // Handed over by the debugger, so the policy of the page stays as it is.
  axe ??= readFile(AXE, "utf8");
  if (await page.evaluate<boolean>("typeof axe === 'undefined'")) await page.evaluate(await axe);
  const ask = `axe.run(document, ${JSON.stringify({ runOnly: rules, resultTypes: ["violations"] })}).then(({ violations }) =>
    violations.flatMap(({ id, help, nodes }) => nodes.map(({ target }) => id + ": " + target.join(" ") + " (" + help + ")")))`;
  return page.evaluate<readonly string[]>(ask);
};

/**
 * The looks of a state. The first of a desktop and of a phone get all rules; another scheme can only change what the rules of colours find, another width what
 * is in reach.
 */
const LOOKS = [
  { colorScheme: "light", width: 1_440, height: 900, rules: RULES },
  { colorScheme: "dark", width: 1_024, height: 768, rules: COLOR_RULES },
  { colorScheme: "dark", width: 390, height: 844, rules: RULES },
  { colorScheme: "light", width: 320, height: 640, rules: COLOR_RULES },
] as const;
/** Where pictures of all looks are kept, for whoever wants to see them. */
const SHOTS = process.env["SHOTS"];
/** Two frames: the first may still show the look before. */
const DRAWN = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn())))";

const nameOf = (page: Page): string =>
  page
    .url()
    .replace(/^https?:..[^/]*/, "")
    .replaceAll(/\W+/g, "-")
    .slice(0, 60);

/**
 * What is hard to use about the state that the page shows once it has read everything: in light and dark, on a desktop, a tablet and phones. Leaves the
 * page in light on a desktop.
 */
export const findingsInEveryLook = async (page: Page): Promise<readonly string[]> => {
  // What is being read has no words yet.
  await page.locator("[data-skeleton]").first().waitFor({ state: "detached" });
  const findings: string[] = [];
  for (const { colorScheme, width, height, rules } of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await page.evaluate(DRAWN);
    if (SHOTS !== undefined) await page.screenshot({ path: join(SHOTS, `${nameOf(page)}-${colorScheme}-${width}.png`) });
    const found = [...(await accessFindings(page, rules)), ...(await layoutFindings(page))];
    findings.push(...found.map((finding) => `${colorScheme} at ${width} px: ${finding}`));
  }
  const [{ colorScheme, width, height }] = LOOKS;
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize({ width, height });
  return findings;
};

/** The same in each of these places, one after the other, once it shows its words, or that it is live if it has none. */
export const findingsInPlaces = async (
  { page, go }: Pick<Visitor, "page" | "go">,
  places: readonly (readonly [path: string, words?: string])[],
): Promise<readonly string[]> => {
  const found: string[] = [];
  for (const [path, words] of places) {
    await go(path);
    await (words === undefined ? page.getByRole("status").getByText("live", { exact: true }) : page.getByText(words).first()).waitFor();
    for (const finding of await findingsInEveryLook(page)) found.push(`${path}: ${finding}`);
  }
  return found;
};

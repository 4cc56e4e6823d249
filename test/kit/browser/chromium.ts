// Chromium for one test file. Each visitor has cookies of their own, and a list of everything that went wrong on their pages.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";

export interface Problem {
  /** `answer`: a call or file that was answered with an error, which a test may have provoked. `policy`: what the page's policy did not allow. */
  readonly kind: "console" | "error" | "policy" | "answer";
  readonly text: string;
}

export interface Visitor {
  readonly context: BrowserContext;
  /** The first page; `context.newPage()` opens more. */
  readonly page: Page;
  readonly problems: readonly Problem[];
  /** Follows a new sign-in link, and is then at `path`. Without a tenant the session works in all of the person's. */
  signIn(userId: string, options?: { readonly tenantId?: string; readonly path?: string }): Promise<void>;
  close(): Promise<void>;
}

const BOUND_MS = 10_000;
const REPORT = "reportPolicyViolation";
const WATCH = `addEventListener("securitypolicyviolation", (event) => ${REPORT}(event.violatedDirective + " " + event.blockedURI + " at " + event.sourceFile));`;

/** The first is Chromium without its own windows, which cost more than the pages in them. */
const PROGRAMS = ["chromium-headless-shell", "chromium"];

const executablePath = (): string => {
  const folders = ["/usr/bin", ...(process.env["PATH"] ?? "").split(delimiter)];
  const found = PROGRAMS.flatMap((program) => folders.map((folder) => join(folder, program))).find(existsSync);
  if (found === undefined) throw new Error(`${PROGRAMS[0]} is missing; node test/kit/setup/ensure-packages.mjs ${PROGRAMS[0]} installs it`);
  return found;
};

const watch = async (context: BrowserContext, problems: Problem[]): Promise<void> => {
  context.on("console", (message) => {
    const text = `${message.text()} ${message.location().url}`;
    // Chromium says so of loopback, too, when a container of another test gets its network.
    if (text.includes("net::ERR_NETWORK_CHANGED")) return;
    if (message.type() === "error") problems.push({ kind: text.startsWith("Failed to load resource") ? "answer" : "console", text });
  });
  context.on("weberror", (error) => void problems.push({ kind: "error", text: error.error().stack ?? error.error().message }));
  await context.exposeFunction(REPORT, (text: string) => void problems.push({ kind: "policy", text }));
  await context.addInitScript({ content: WATCH });
};

/** The gateway under test: a world, or a process with the command line's links. */
export interface Gateway {
  readonly url: string;
  readonly app: { signInLink(person: { readonly userId: string; readonly tenantId?: string | undefined }): Promise<{ readonly url: string }> };
}

export const openChromium = async (world: Gateway) => {
  const browser = await chromium.launch({ executablePath: executablePath(), args: ["--no-sandbox", "--disable-dev-shm-usage"] });

  const visitor = async (options: BrowserContextOptions = {}): Promise<Visitor> => {
    const context = await browser.newContext({ baseURL: world.url, viewport: { width: 1_440, height: 900 }, locale: "en-GB", timezoneId: "UTC", ...options });
    context.setDefaultTimeout(BOUND_MS);
    const problems: Problem[] = [];
    await watch(context, problems);
    const page = await context.newPage();
    return {
      context,
      page,
      problems,
      signIn: async (userId, { tenantId, path = "/" } = {}) => {
        const { url } = await world.app.signInLink({ userId, tenantId });
        // Not until the network is idle: the console's stream of events never ends.
        await page.goto(`${url}&return_to=${encodeURIComponent(path)}`, { waitUntil: "domcontentloaded" });
      },
      close: () => context.close(),
    };
  };

  return { visitor, close: () => browser.close() };
};
export type Chromium = Awaited<ReturnType<typeof openChromium>>;

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What makes the page as it is now hard to use for some people: `rule: element (how to fix it)`. */
export const accessFindings = async (page: Page): Promise<readonly string[]> => {
  // Handed over by the debugger, so the policy of the page stays as it is.
  await page.evaluate(await readFile(AXE, "utf8"));
  const ask = `axe.run(document, ${JSON.stringify({ runOnly: RULES, resultTypes: ["violations"] })}).then(({ violations }) =>
    violations.flatMap(({ id, help, nodes }) => nodes.map(({ target }) => id + ": " + target.join(" ") + " (" + help + ")")))`;
  return page.evaluate<readonly string[]>(ask);
};

/** Whether people must scroll sideways to read the page. */
export const scrollsSideways = (page: Page): Promise<boolean> => page.evaluate<boolean>("document.documentElement.scrollWidth > innerWidth");

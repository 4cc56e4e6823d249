// Firefox for test files, driven over WebDriver BiDi: for what one browser may do otherwise than the other.
import { fileURLToPath } from "node:url";
import { firefox } from "playwright-core";
import { withTimeout } from "../../../server/platform/timeout.ts";
import { type Chromium, type Gateway, visitorsOf } from "./chromium.ts";
import { onceAWorker } from "./worker-end.ts";

const RELAY = fileURLToPath(new URL("firefox-relay.mjs", import.meta.url));

const browserOfWorker = onceAWorker("browser", async () => {
  const browser = await firefox.launch({ channel: "moz-firefox", executablePath: RELAY, firefoxUserPrefs: { "ui.prefersReducedMotion": 1 } });
  return { value: browser, end: () => browser.close() };
});

export const openFirefox = async (world: Gateway): Promise<Chromium> => visitorsOf(await withTimeout(browserOfWorker(), 60_000, "no Firefox started"), world);

// One gateway with the console for all test files of a worker; each file has tenants of its own.
import { afterAll, afterEach } from "vitest";
import { withTimeout } from "../../../server/platform/timeout.ts";
import { startWorld, type World } from "../gateway/world.ts";
import { freePort } from "../net/free-port.ts";
import { type Chromium, openChromium } from "./chromium.ts";
import { onceAWorker } from "./worker-end.ts";

/** Tests follow each other faster than people do, and all come from one address. */
const UNLIMITED = ["STANDARD", "TENANT", "READS", "AGENT", "PAIRING", "INVITES", "ANONYMOUS", "FAILED_AUTH"];

const worldOfWorker = onceAWorker("gateway", async () => {
  const world = await startWorld({
    CONSOLE: "on",
    TRUSTED_PROXIES: "127.0.0.0/8",
    // A world has two sessions for lists, a page reads ten at once, and two visitors do so beside each other: on a busy machine one waited for longer than it may.
    DATABASE_POOL: "24",
    TUNNEL_TCP_PORTS: String(await freePort()),
    ...Object.fromEntries(UNLIMITED.map((limit) => [`RATE_LIMIT_${limit}`, "off"])),
  });
  return { value: world, end: world.close };
});

export const openConsoleGateway = (): Promise<World> => withTimeout(worldOfWorker(), 30_000, "no gateway started");

const chromiumOfWorker = onceAWorker("console's visitors", async () => {
  const chromium = await openChromium(await openConsoleGateway());
  return { value: chromium, end: chromium.close };
});

export interface Console {
  readonly world: World;
  readonly chromium: Chromium;
}

/** Await it at the top of a test file. The file's visitors leave when its tests are over; the gateway and the browser stay for the next file. */
export const openConsole = async (): Promise<Console> => {
  const world = await openConsoleGateway();
  const chromium = await withTimeout(chromiumOfWorker(), 30_000, "no browser started");
  afterEach(({ task }) => chromium.explainFailure(task));
  afterAll(chromium.leave);
  return { world, chromium };
};

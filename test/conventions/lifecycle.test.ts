// A node opens and closes its parts in a fixed order, even if one of them fails or hangs.

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApp } from "../../server/app.ts";
import { type Config, readConfig } from "../../server/config.ts";
import { systemClock } from "../../server/core/clock.ts";
import { createLifecycle } from "../../server/core/lifecycle/lifecycle.ts";
import type { Log } from "../../server/platform/telemetry/log.ts";
import { createTestDatabase } from "../kit/stores/database.ts";

const PARTS = [
  "db",
  "calls to providers",
  "the database's clock",
  "bus",
  "outgoing calls",
  "outbox",
  "own spans",
  "change notifier",
  "questions between nodes",
  "sent commands",
  "security",
  "agent registry",
  "jobs",
  "internal listener",
  "listener",
  "edge",
  "node",
  "agent sockets",
];

/** Records the log line for each part that the app closes. */
const closings = (): { readonly log: Log; readonly closed: string[] } => {
  const closed: string[] = [];
  const note = (fields: object, message: string): void => {
    if ("part" in fields) closed.push(`${String(fields.part)} ${message}`);
  };
  return { closed, log: { debug: note, info: () => undefined, warn: () => undefined, error: note } };
};

describe("a node", () => {
  let dataDir = "";
  let settings: (more?: Readonly<Record<string, string>>) => Config;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "mooring-life-"));
    const url = await createTestDatabase();
    const given = {
      NODE_ENV: "test",
      PORT: "0",
      INTERNAL_PORT: "0",
      EDGE_PORT: "0",
      DATA_DIR: dataDir,
      DATABASE_URL: url,
      DATABASE_POOL: "4",
      SHUTDOWN_SECONDS: "5",
    };
    settings = (more = {}) => readConfig({ ...given, MASTER_KEY: Buffer.alloc(32, 1).toString("base64"), ...more });
  });
  afterAll(() => rm(dataDir, { recursive: true, force: true }));

  test("opens its parts in this order, listeners last, and closes each once, in reverse order", async () => {
    const { log, closed } = closings();
    const app = await createApp(settings(), { clock: systemClock, log });
    await app.listen();
    expect(app.parts()).toEqual(PARTS);
    expect((await fetch(`${app.publicUrl()}/v1/health/ready`)).status).toBe(200);
    await Promise.all([app.close(), app.close()]);
    await app.close();
    expect(closed).toEqual(PARTS.toReversed().map((part) => `${part} closed`));
    await expect(fetch(`${app.publicUrl()}/v1/health/live`)).rejects.toThrow();
  });

  test("closes the opened parts if a later part fails to open", async () => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => blocker.once("listening", resolve));
    const taken = blocker.address();
    if (taken === null || typeof taken === "string") throw new Error("no port");
    const { log, closed } = closings();
    const app = await createApp(settings({ PORT: String(taken.port) }), { clock: systemClock, log });
    await expect(app.listen()).rejects.toThrow(String(taken.port));
    const opened = PARTS.slice(0, PARTS.indexOf("listener"));
    expect(closed).toEqual(opened.toReversed().map((part) => `${part} closed`));
    await new Promise((resolve) => blocker.close(resolve));
  });

  test("closes the opened parts if its construction fails", async () => {
    const { log, closed } = closings();
    // A folder in place of the token file cannot be read.
    const config = settings({ DATA_DIR: join(dataDir, "nested") });
    await createApp(config, { clock: systemClock, log }).then((app) => app.close());
    closed.length = 0;
    await rm(join(dataDir, "nested", "internal.token"));
    await mkdir(join(dataDir, "nested", "internal.token"));
    await expect(createApp(config, { clock: systemClock, log })).rejects.toThrow();
    expect(closed).toEqual(["bus", "the database's clock", "calls to providers", "db"].map((part) => `${part} closed`));
  });
});

describe("a lifecycle", () => {
  const recorded = (partTimeoutMs: number) => {
    const steps: string[] = [];
    return { steps, life: createLifecycle({ partTimeoutMs, onStep: (name, outcome) => steps.push(`${name} ${outcome}`) }) };
  };

  test("gives up on a part that hangs beyond the time limit, and closes the others", async () => {
    const { steps, life } = recorded(30);
    life.use("first", { close: () => undefined });
    life.use("stuck", { close: () => new Promise<void>(() => undefined) });
    life.use("last", { close: async () => undefined });
    await life.close();
    expect(steps).toEqual(["last closed", "stuck timed out", "first closed"]);
  });

  test("closes the other parts if one throws or rejects", async () => {
    const { steps, life } = recorded(1_000);
    life.use("first", { close: () => undefined });
    life.use("rejects", { close: () => Promise.reject(new Error("no")) });
    life.use("throws", {
      close: () => {
        throw new Error("no");
      },
    });
    await life.close();
    expect(steps).toEqual(["throws failed", "rejects failed", "first closed"]);
  });

  test("closes once, however often it is told to, and aborts its signal before the first part closes", async () => {
    const { steps, life } = recorded(1_000);
    let abortedBefore = false;
    life.use("only", {
      close: async () => {
        abortedBefore = life.signal.aborted;
      },
    });
    expect(life.signal.aborted).toBe(false);
    await Promise.all([life.close(), life.close()]);
    await life.close();
    expect({ steps, abortedBefore }).toEqual({ steps: ["only closed"], abortedBefore: true });
  });
});

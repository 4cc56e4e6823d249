// The log of an app in the console: its end, what comes, and what a person does with it.
import { afterEach, expect, test } from "vitest";
import { openRig, type Rig } from "../../features/apps/kit.ts";
import { accessFindings, type Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import type { Device } from "../../kit/gateway/world.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();
let rig: Rig | null = null;
let visitor: Visitor | null = null;
afterEach(async () => {
  await visitor?.close();
  await rig?.stop();
  [visitor, rig] = [null, null];
});

interface Line {
  readonly at: string;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}
let written = 0;
const line = (text: string, stream: Line["stream"] = "stdout"): Line => {
  written += 1;
  return { at: new Date(Date.UTC(2026, 10, 23, 5, 0, 0, written)).toISOString(), stream, text };
};

/** An agent that sends `tail` as the end of each log, and what `write` is given to whoever follows. */
const createLogger = (tail: readonly Line[]) => {
  let followed: string | null = null;
  let n = 0;
  let send = async (_head: object, _lines: readonly Line[]): Promise<void> => undefined;
  const handlers = (device: Device) => {
    send = async (head, lines) => {
      const rawBody = [head, ...lines].map((each) => JSON.stringify(each)).join("\n");
      const answer = await world.call(device.as, "POST", "/v1/agent/logs", { rawBody, headers: { "content-type": "application/x-ndjson" } });
      expect(answer.status).toBe(200);
    };
    const same = { long: false, cancelable: false };
    return {
      "app.logs": {
        ...same,
        run: async (payload: unknown) => {
          const { followId } = payload as { followId: string }; // as: the contract says what is in it
          await send({ followId, n: 1, done: true }, tail);
          return { lines: tail.length };
        },
      },
      "app.logs.follow": {
        ...same,
        run: async (payload: unknown) => {
          const { followId } = payload as { followId: string }; // as: the contract says what is in it
          if (followId !== followed) n = 0;
          followed = followId;
          return { until: new Date(Date.now() + 60_000).toISOString() };
        },
      },
    };
  };
  const write = async (...lines: readonly Line[]): Promise<void> => {
    n += 1;
    await send({ followId: followed, n }, lines);
  };
  return { handlers, write, isFollowed: () => followed !== null };
};

const open = async (tail: readonly Line[], path: (deployment: { appId: string; deploymentId: string }) => string) => {
  const logger = createLogger(tail);
  const made = await openRig(world, { handlers: logger.handlers });
  rig = made;
  const { deploymentId } = await made.deploy({ name: "store" });
  const { appId } = await made.until(`/deployments/${deploymentId}`, "active");
  const seen = await chromium.visitor();
  visitor = seen;
  await seen.signIn(made.tenant.ownerId, { path: path({ appId, deploymentId }) });
  const { page, problems } = seen;
  await page.getByText("live", { exact: true }).waitFor();
  const lines = page.getByRole("region", { name: "Lines of the log" });
  await eventually(() => expect(logger.isFollowed()).toBe(true));
  return { rig: made, page, problems, lines, write: logger.write };
};

test("a log shows its end and follows what comes, as text", async () => {
  const { page, lines, write, problems } = await open([line("listening"), line(HOSTILE, "stderr")], ({ appId }) => `/apps/${appId}?tab=logs`);
  await lines.getByText("listening").waitFor();
  await lines.getByText(HOSTILE).waitFor();
  await write(line("GET /first 200"));
  await lines.getByText("GET /first 200").waitFor();
  expect(await lines.locator("[data-stream]").allTextContents()).toHaveLength(3);
  expect(await page.locator("img").count()).toBe(0);
  expect(await accessFindings(page)).toEqual([]);
  expect(problems).toEqual([]);
});

test("a paused log stands still, counts what comes meanwhile, and has it when it goes on", async () => {
  const { page, lines, write } = await open([line("listening")], ({ deploymentId }) => `/deployments/${deploymentId}?tab=logs`);
  await lines.getByText("listening").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await write(line("GET /first 200"), line("GET /second 500", "stderr"));
  await page.getByText("2 new lines since").waitFor();
  expect(await lines.getByText("GET /first 200").count()).toBe(0);
  await page.getByRole("button", { name: "Go on" }).click();
  await lines.getByText("GET /second 500").waitFor();
  await page.getByRole("searchbox", { name: "Search" }).fill("SECOND");
  await page.getByText("1 of 3 lines").waitFor();
  expect(await lines.getByText("listening").count()).toBe(0);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save" }).click();
  expect((await saved).suggestedFilename()).toBe("store.log");
});

test("a long log stays bounded, follows its end, and wraps its lines or not", async () => {
  const { page, lines, write } = await open([line("oldest")], ({ appId }) => `/apps/${appId}?tab=logs`);
  await lines.getByText("oldest").waitFor();
  for (let part = 0; part < 5; part++) {
    await write(...Array.from({ length: 500 }, (_, at) => line(`${part * 500 + at} ${"long ".repeat(60)}`)));
  }
  await lines.getByText(/^\S+ 2499 /).waitFor();
  expect(await lines.locator("[data-stream]").count()).toBe(2_000);
  expect(await lines.getByText("oldest").count()).toBe(0);
  expect(
    await page.evaluate(
      "(() => { const at = document.querySelector('[aria-label=\"Lines of the log\"]'); return at.scrollHeight - at.scrollTop - at.clientHeight; })()",
    ),
  ).toBeLessThan(30);
  const wide =
    "document.querySelector('[aria-label=\"Lines of the log\"]').scrollWidth > document.querySelector('[aria-label=\"Lines of the log\"]').clientWidth";
  expect(await page.evaluate(wide)).toBe(false);
  await page.getByRole("checkbox", { name: "Wrap lines" }).uncheck();
  expect(await page.evaluate(wide)).toBe(true);
});

test("the log of an app whose device is away says so, and that is no failure", async () => {
  const made = await openRig(world, { online: false });
  rig = made;
  const { appId } = await made.deploy();
  visitor = await chromium.visitor();
  await visitor.signIn(made.tenant.ownerId, { path: `/apps/${appId}?tab=logs` });
  const { page } = visitor;
  await page.getByText("New lines come when it is back.").or(page.getByText("The app is not on its device.")).first().waitFor();
  await page.getByText("No lines yet.").waitFor();
  expect(await page.getByRole("alert").count()).toBe(0);
  expect(await accessFindings(page)).toEqual([]);
});

test("whoever may not read logs is offered none", async () => {
  const { rig: made, page } = await open([line("listening")], ({ appId }) => `/apps/${appId}?tab=logs`);
  await page.getByRole("link", { name: "Logs" }).waitFor();
  await made.tenant.token("viewer");
  const viewer = await chromium.visitor();
  await viewer.signIn(made.tenant.ownerId.replace("owner", "viewer"), { path: new URL(page.url()).pathname });
  await viewer.page.getByRole("list", { name: "Steps" }).waitFor();
  expect(await viewer.page.getByRole("link", { name: "Logs" }).count()).toBe(0);
  await viewer.close();
});

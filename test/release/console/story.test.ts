// README's "Run it", as a newcomer follows it: the demo's link, a command that ends, and a 26th device that the reference agent pairs.
import { spawn } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { built, createSandbox, type Sandbox } from "../../flows/processes.ts";
import { type Chromium, openChromium } from "../../kit/browser/chromium.ts";

let sandbox: Sandbox;
let chromium: Chromium | null = null;
beforeAll(async () => {
  sandbox = await createSandbox();
});
afterAll(async () => {
  await chromium?.close();
  await sandbox.remove();
});

/** Starts it, and resolves with what it says once that matches. */
const says = (script: string, args: readonly string[], pattern: RegExp): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [built(script), ...args], {
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...sandbox.env },
      cwd: sandbox.dir,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    child.once("exit", (code) => reject(new Error(`${script} ended with ${code}: ${said}`)));
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        const [, found] = pattern.exec(said) ?? [];
        if (found !== undefined) resolve(found);
      });
  });

test("a newcomer watches the fleet, sends a command, and pairs a 26th device", { timeout: 180_000 }, async () => {
  const link = await says("agent-sim/demo.js", [], /(http\S+\/v1\/auth\/login\?token=\S+)/);
  const { origin } = new URL(link);
  chromium = await openChromium({ url: origin, app: { signInLink: async () => ({ url: link }) } });
  const { page, problems, close } = await chromium.visitor();
  await page.goto(link, { waitUntil: "domcontentloaded" });
  // Two are switched off and one was never started.
  await page.getByRole("link", { name: /Online 22 / }).waitFor({ timeout: 60_000 });

  await page.getByRole("link", { name: "Devices", exact: true }).click();
  await page.getByText("berlin-01-gw-01").click();
  await page.getByRole("heading", { name: "berlin-01-gw-01" }).waitFor();
  await page.keyboard.press("c");
  await page.getByLabel("Type").fill("ping");
  await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("region", { name: "ping" }).getByText("succeeded").first().waitFor();

  const code = await says("agent-sim/main.js", ["agent", "--pair", "nuc", "--url", origin], /approve (\S+) at/);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("menuitem", { name: "Pair a device" }).click();
  await page.getByLabel("Pairing code").fill(code);
  await page.getByRole("button", { name: "Yes, approve" }).click();
  await page.getByText("nuc is online.").waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("link", { name: /Online 23 / }).waitFor();
  expect(problems).toEqual([]);
  await close();
});

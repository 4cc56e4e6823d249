// The gateway is killed under an open page: the page says so, and is right again without a reload.
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootstrapTenant, createSandbox, type GatewayProcess, node, type Sandbox, startGatewayProcess } from "../../flows/processes.ts";
import { type Chromium, openChromium } from "../../kit/browser/chromium.ts";

let sandbox: Sandbox;
let gateway: GatewayProcess;
let chromium: Chromium;
beforeAll(async () => {
  sandbox = await createSandbox();
  gateway = await startGatewayProcess(sandbox.env);
  const signInLink = async ({ userId }: { readonly userId: string }) => {
    const { stdout } = await node("server/cli.js", ["sign-in", "--user", userId], sandbox);
    return { url: /https?:\S+token=\S+/.exec(stdout)?.[0] ?? "" };
  };
  chromium = await openChromium({ url: gateway.url, app: { signInLink } });
}, 120_000);
afterAll(async () => {
  await chromium?.close();
  await gateway.end("SIGKILL");
  await sandbox.remove();
});

test("a page says that it reconnects, and shows what changed meanwhile", async () => {
  const { token, userId } = await bootstrapTenant(sandbox);
  const provision = () =>
    fetch(`${gateway.url}/v1/devices/provision`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: '{"count":1}',
    });
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(userId, { path: "/devices" });
  await page.getByText("Devices appear here once they are paired.").waitFor();
  await page.evaluate("window.isTheSamePage = true");
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();

  await gateway.end("SIGKILL");
  await page.getByRole("status").getByText("Reconnecting, data may be stale").waitFor();
  gateway = await startGatewayProcess(sandbox.env);
  expect((await provision()).status).toBe(201);
  await page.getByRole("status").getByText("live", { exact: true }).waitFor({ timeout: 30_000 });
  await page.getByText("1 device", { exact: true }).waitFor();
  expect(await page.evaluate("window.isTheSamePage")).toBe(true);
  // What the browser itself says of refused connections is no fault of the page.
  expect(problems.filter(({ kind }) => kind !== "answer" && kind !== "console")).toEqual([]);
  await close();
});

// Sign-in in the browser: by the operator's link, at an identity provider, and again where a session has ended.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Chromium, openChromium } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { startIdentityProvider, type TestIdentityProvider } from "../../kit/net/identity-provider.ts";

const { world, chromium } = await openConsole();

describe("by a link", async () => {
  const tenant = await world.tenant();
  const link = async (): Promise<string> => (await world.app.signInLink({ userId: tenant.ownerId })).url;

  test("whoever is not signed in makes no call that is refused, pastes the link, and is where the address led", async () => {
    const { page, problems, close } = await chromium.visitor();
    await page.goto("/devices?status=offline", { waitUntil: "domcontentloaded" });
    await page.getByLabel("Link, or its token").fill(await link());
    expect(problems).toEqual([]);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Devices" }).waitFor();
    expect(page.url()).toBe(`${world.url}/devices?status=offline`);
    expect(problems).toEqual([]);
    await close();
  });

  test.each([
    [
      "a used link",
      async (): Promise<string> => {
        const url = await link();
        await fetch(url, { redirect: "manual" });
        return url;
      },
    ],
    ["an invented one", async (): Promise<string> => `${world.url}/v1/auth/login?token=${"x".repeat(43)}`],
  ])("%s says why it fails, and the form keeps it", async (_, make) => {
    const { page, close } = await chromium.visitor();
    const url = await make();
    await page.goto("/", { waitUntil: "domcontentloaded" });
    await page.getByLabel("Link, or its token").fill(url);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("SIGN_IN_FAILED").waitFor();
    expect(await page.getByLabel("Link, or its token").inputValue()).toBe(url);
    await close();
  });

  test("a session that ends elsewhere asks over the page, and the page goes on where it was", async () => {
    const { page, signIn, close } = await chromium.visitor();
    await signIn(tenant.ownerId, { path: "/fleets" });
    await page.getByRole("button", { name: "Create a fleet" }).first().click();
    await page.getByLabel("Name").fill("Kiosks of the south");
    const elsewhere = await world.session(tenant.ownerId);
    expect((await world.call(elsewhere.as, "DELETE", "/v1/account/sessions")).body.data.ended).toBeGreaterThan(0);
    // The end of the page's stream may have asked before this click, and then the question lies over the button.
    await page.getByRole("dialog").getByRole("button", { name: "Create a fleet" }).dispatchEvent("click");
    const again = page.getByRole("dialog", { name: "Your session has ended" });
    await again.getByLabel("Link, or its token").fill(await link());
    await again.getByRole("button", { name: "Sign in" }).click();
    await again.waitFor({ state: "hidden" });
    expect(await page.getByLabel("Name").inputValue()).toBe("Kiosks of the south");
    await page.getByRole("dialog").getByRole("button", { name: "Create a fleet" }).click();
    await page.getByRole("heading", { name: "Kiosks of the south" }).waitFor();
    await close();
  });
});

describe("at an identity provider", () => {
  // A gateway of its own: the provider is a setting.
  let provider: TestIdentityProvider;
  let world: World;
  let chromium: Chromium;
  beforeAll(async () => {
    const port = await freePort();
    provider = await startIdentityProvider(`http://127.0.0.1:${port}`);
    world = await startWorld({ CONSOLE: "on", ...provider.env, PORT: String(port) });
    await world.app.bootstrap({ name: "House", slug: "house", userId: "ann", unlimited: true });
    chromium = await openChromium(world);
  });
  afterAll(async () => {
    await chromium?.close();
    await world.close();
    await provider.close();
  });

  test("a person signs in there, and is back where the address led", async () => {
    const { page, problems, close } = await chromium.visitor();
    await page.goto("/commands?show=all", { waitUntil: "domcontentloaded" });
    await page.getByRole("link", { name: "Sign in with your identity provider" }).click();
    await page.locator("input[name=login]").fill("ann");
    await page.locator("input[name=password]").fill("any");
    await page.getByRole("button").first().click();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("heading", { name: "Commands" }).waitFor();
    expect(page.url()).toBe(`${world.url}/commands?show=all`);
    expect(problems.filter(({ text }) => text.includes(world.url))).toEqual([]);
    await close();
  });
});

// What the console shows to those who may not do or not see everything: no action, no count and no name that is not theirs, in any place.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRig, type Rig } from "../../features/apps/kit.ts";
import { openConsole } from "../../kit/browser/console.ts";
import type { Device } from "../../kit/gateway/world.ts";

// Not by name: the console is compiled with the browser's types, the tests are not.
const { PLACES }: { readonly PLACES: readonly { readonly to: string; readonly needs?: string }[] } = await import(
  new URL("../../../portal/src/app/places.ts", import.meta.url).href
);

const { world, chromium } = await openConsole();
let rig: Rig;
let hers: Device;
let viewerId: string;
let operatorId: string;
const limit = async (userId: string, deviceIds: readonly string[]): Promise<void> => {
  const { memberId } = (await rig.ask("GET /members")).find((member: { readonly userId: string }) => member.userId === userId);
  await rig.ask(`PATCH /members/${memberId}`, { selector: { deviceIds } });
};
beforeAll(async () => {
  rig = await openRig(world);
  hers = await rig.tenant.device();
  await rig.ask(`PATCH /devices/${rig.device.deviceId}`, { name: "vault", tags: ["secret-site"] });
  await rig.ask(`PATCH /devices/${hers.deviceId}`, { name: "porch", tags: ["garden"] });
  const { deploymentId } = await rig.deploy({ name: "ledger" });
  await rig.until(`/deployments/${deploymentId}`, "active");
  await rig.ask("POST /fleets", { name: "Cellar", deviceIds: [rig.device.deviceId] });
  for (const { deviceId } of [rig.device, hers]) await rig.ask(`POST /devices/${deviceId}/commands`, { type: "ping" });
  await rig.tenant.token("viewer");
  await rig.tenant.token("operator");
  [viewerId, operatorId] = [rig.tenant.ownerId.replace("owner", "viewer"), rig.tenant.ownerId.replace("owner", "operator")];
  await limit(operatorId, [hers.deviceId]);
});
afterAll(async () => {
  await rig?.stop();
});

const ACTIONS = /^(Pair|Install|Create|Invite|New|Remove|Delete|Send|Restart|Start|Stop|Change|Save|Block|Replay|Rotate|Acknowledge|Silence|Test|Command|Tag)/;
const placesOf = (): readonly string[] => PLACES.filter(({ needs }) => needs !== "administrator").map(({ to }) => to);

describe("a viewer", () => {
  test("is offered no action in any place, and the owner is", { timeout: 90_000 }, async () => {
    const actionsOf = async (userId: string): Promise<readonly string[]> => {
      const { page, problems, signIn, go, close } = await chromium.visitor();
      await signIn(userId, { path: "/devices" });
      const found: string[] = [];
      for (const path of [...placesOf().filter((to) => to !== "/account"), `/devices/${rig.device.deviceId}`]) {
        await go(path);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await page.locator("[data-skeleton]").first().waitFor({ state: "detached" });
        const names = [...(await page.getByRole("main").getByRole("button").allInnerTexts()), ...(await page.locator("main a[data-kind]").allInnerTexts())];
        found.push(...names.filter((name) => ACTIONS.test(name.trim())).map((name) => `${path}: ${name}`));
      }
      expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
      await close();
      return found;
    };
    expect(await actionsOf(viewerId)).toEqual([]);
    expect((await actionsOf(rig.tenant.ownerId)).length).toBeGreaterThan(8);
  });
});

describe("somebody who is limited to one device", () => {
  test("reads neither the name nor the number of anything else", { timeout: 90_000 }, async () => {
    const { page, problems, signIn, go, close } = await chromium.visitor();
    await signIn(operatorId, { path: "/devices" });
    await page.getByText("1 device", { exact: true }).waitFor();
    const seen: string[] = [];
    for (const path of placesOf()) {
      await go(path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.locator("[data-skeleton]").first().waitFor({ state: "detached" });
      const text = await page.locator("body").innerText();
      for (const word of ["vault", "secret-site", "ledger", "Cellar", rig.device.deviceId, "2 devices", "1 app"])
        if (new RegExp(`\\b${word}\\b`).test(text)) seen.push(`${path}: ${word}`);
    }
    expect(seen).toEqual([]);
    await go("/commands");
    await page.getByRole("grid", { name: "Commands" }).getByText("porch").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Place, device or id" }).fill("vau");
    await page.waitForResponse(/devices\.list/);
    expect(await page.getByRole("option", { name: /vault/ }).count()).toBe(0);
    await page.keyboard.press("Escape");
    await go(`/devices/${rig.device.deviceId}`);
    await page.getByText("Unknown, or not yours.").first().waitFor();
    expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
    await close();
  });
});

// Backups in the browser: from an app's page to a restore that shows first what it would do; policies, destinations and volumes.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRig, type Rig } from "../features/apps/kit.ts";
import { findingsInEveryLook, findingsInPlaces } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";

const { world, chromium } = await openConsole();
const BYTES = 50_000_000;
const SNAPSHOT = "a".repeat(64);
const answers = (output: (payload: { readonly dryRun?: boolean }) => object) => ({
  long: false,
  cancelable: true,
  run: async (payload: unknown) => output(payload as { readonly dryRun?: boolean }),
});
const HANDLERS = {
  "backup.create": answers(() => ({
    ...{ snapshotId: SNAPSHOT, size: BYTES, addedBytes: 1_000_000, files: 3, warnings: [], partial: false },
    ...{ consistency: "stopped", downtimeSeconds: 0.4, seconds: 1 },
  })),
  "backup.restore": answers(({ dryRun }) => ({
    ...{ files: 3, bytes: BYTES, verified: true },
    ...(dryRun === true ? { plan: { files: 3, bytes: BYTES, freeBytes: 10_000_000_000, replaces: ["data"] } } : {}),
  })),
  "backup.download": answers(() => ({})),
  "backup.verify": answers(() => ({ bytes: BYTES })),
  "backup.test": answers(() => ({ created: true, snapshots: 0, seconds: 0.1 })),
  "volume.scan": answers(() => ({ volumes: [], seconds: 0.1 })),
  "volume.remove": answers(() => ({ removed: true, freedBytes: 5 })),
};

/** Longer than the feed takes to bring news, and a page to ask again. */
const NEWS_MS = 2_500;
let rig: Rig;
let app: string;
let appId: string;
/** A device that runs an app without a backup, and has a destination. */
const openStore = async () => {
  const made = await openRig(world, { handlers: () => HANDLERS });
  await made.ask(`PATCH /devices/${made.device.deviceId}`, { name: "attic" });
  await made.ask("POST /backup-destinations", { name: "Shelf", kind: "local", isDefault: true });
  const { deploymentId } = await made.deploy({ name: "store" });
  const { appId } = await made.until(`/deployments/${deploymentId}`, "active");
  return { made, appId };
};
beforeAll(async () => {
  ({ made: rig, appId } = await openStore());
  app = `/apps/${appId}`;
  const volume = { driver: "local", sizeState: "exact", files: 2 };
  await rig.ask(
    `PUT /devices/${rig.device.deviceId}/volumes`,
    {
      volumes: [
        { ...volume, name: `${appId}.data`, mountpoint: "/srv/store", size: 7_000_000, appId, inUse: true },
        { ...volume, name: "left-behind", mountpoint: "/srv/left", size: 9_000_000 },
      ],
    },
    rig.device.as,
  );
});
afterAll(async () => {
  await rig?.stop();
});
const visit = async (path: string, userId = rig.tenant.ownerId) => {
  const visitor = await chromium.visitor();
  await visitor.signIn(userId, { path });
  return visitor;
};
const backedUp = async (): Promise<string> => {
  const { backupId } = await rig.ask(`POST /devices/${rig.device.deviceId}/backups`, { appId });
  await rig.until(`/backups/${backupId}`, "completed");
  return backupId;
};

test("an app is backed up from its page, which then says how old the last good backup is", async () => {
  const { made, appId } = await openStore();
  const { page, problems, close } = await visit(`/apps/${appId}`, made.tenant.ownerId);
  await page.getByText("no backup", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Backups" }).getByRole("button", { name: "Back up now" }).click();
  await page.getByText("completed", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Verify" }).click();
  await page.getByText("verified", { exact: true }).first().waitFor();
  await page.getByRole("link", { name: "store" }).click();
  await page.getByText(/^last backup/).waitFor();
  await page.getByRole("link", { name: "Backups", exact: true }).last().click();
  expect(problems).toEqual([]);
  await close();
  await made.stop();
});

test("a restore shows what it would do before anybody can order it", { timeout: 120_000 }, async () => {
  const backupId = await backedUp();
  const { page, problems, close } = await visit(`/backups/${backupId}`);
  await page.getByRole("button", { name: "Restore…" }).click();
  const dialog = page.getByRole("dialog", { name: "Restore" });
  expect(await dialog.getByRole("button", { name: /restore$/i }).count()).toBe(0);
  await dialog.getByRole("button", { name: "Show what it would do" }).click();
  await dialog.getByText("3 files, 47.7 MB").waitFor();
  await dialog.getByText("data", { exact: true }).waitFor();
  expect(await rig.ask(`GET /restores?backupId=${backupId}`)).toEqual([expect.objectContaining({ dryRun: true })]);
  expect(await findingsInEveryLook(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Replace and restore" }).click();
  await dialog.getByText("The app has the data of this backup.").waitFor();
  await dialog.getByRole("link", { name: "Open the app" }).waitFor();
  expect(problems).toEqual([]);
  await close();
});

test("a download begins with a link that somebody asked for", async () => {
  const backupId = await backedUp();
  const { page, problems, close } = await visit(`/backups/${backupId}`);
  await page.getByRole("button", { name: "Restore…" }).waitFor();
  await page.keyboard.press(".");
  await page.getByRole("menuitem", { name: "Download…" }).click();
  const dialog = page.getByRole("dialog", { name: "Download the backup" });
  await dialog.getByText(/47.7 MB. It is not encrypted/).waitFor();
  expect(await dialog.getByRole("link").count()).toBe(0);
  await dialog.getByRole("button", { name: "Make a link" }).click();
  expect(await dialog.getByRole("link", { name: "Download the archive" }).getAttribute("href")).toMatch(/\/backup-downloads\/[\w-]+\.[\w-]+$/);
  await dialog.getByText(/in 1[45] min/).waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  expect(problems).toEqual([]);
  await close();
});

test("a backup that failed says why, with the next step, on its own page and on that of its app", async () => {
  const backupId = await backedUp();
  const failure = { stage: "uploading", reason: "REPOSITORY_UNREACHABLE", message: "Nobody answers at the shelf.", lines: ["dial tcp"] };
  await world.sql.query("update backups set status = 'failed', failure = $2 where backup_id = $1", [backupId, failure]);
  const { page, go, problems, close } = await visit(`/backups/${backupId}`);
  await page.getByText("Nobody answers at the shelf.").waitFor();
  await page.getByRole("button", { name: "Back up now" }).waitFor();
  await go(app);
  await page.getByText("The newest backup failed.").waitFor();
  expect(problems).toEqual([]);
  await close();
});

test("a policy is previewed before it is stored, runs, pauses and goes", { timeout: 120_000 }, async () => {
  const { page, problems, close } = await visit("/backups/policies");
  await page.getByRole("button", { name: "Create a policy" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a policy" });
  await dialog.getByLabel("Name").fill("Nightly");
  await dialog.getByRole("combobox", { name: "Devices" }).fill("att");
  await dialog.getByRole("option", { name: "attic" }).click();
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByRole("region", { name: "What it does" }).getByText("1 app").waitFor();
  expect(await rig.ask("GET /backup-policies")).toEqual([]);
  expect(await findingsInEveryLook(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Create a policy" }).click();
  await page.getByRole("heading", { level: 1, name: "Nightly" }).waitFor();
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("grid", { name: "Runs" }).getByText(/of 1/).waitFor();
  await page.keyboard.press(".");
  await page.getByRole("menuitem", { name: "Pause" }).click();
  await page.getByText("paused", { exact: true }).waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.keyboard.press(".");
  // The answer comes after the news of the deletion, which must not make the page that is being left ask for what is gone.
  await page.route(/backupPolicies\.remove/, async (route) => {
    const answer = await route.fetch();
    await page.waitForRequest(/backupPolicies\.get/, { timeout: NEWS_MS }).catch(() => null);
    await route.fulfill({ response: answer });
  });
  await page.getByRole("menuitem", { name: "Delete the policy" }).click();
  await page.getByLabel("Type Nightly to confirm").fill("Nightly");
  await page.getByRole("button", { name: "Delete the policy" }).click();
  await page.getByText("A policy backs up apps by itself").waitFor();
  expect(problems).toEqual([]);
  await close();
});

test("a destination is tried by a device, and its owner gets the sheet that restores without this product", async () => {
  const { page, problems, close } = await visit("/backups/destinations");
  await page.getByRole("grid", { name: "Destinations" }).getByText("Shelf").click();
  const pick = async (): Promise<void> => {
    await page.getByRole("dialog").getByRole("combobox", { name: "Device" }).fill("att");
    await page.getByRole("option", { name: "attic" }).click();
  };
  await page.getByRole("button", { name: "Test it" }).click();
  await pick();
  await page.getByRole("dialog").getByRole("button", { name: "Test it" }).click();
  await page.getByRole("dialog").getByRole("link", { name: "See its command" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Recovery sheet" }).click();
  await pick();
  await page.getByRole("button", { name: "Show the sheet" }).click();
  await page
    .getByRole("region", { name: "Variables" })
    .getByText(/RESTIC_PASSWORD='.{10,}'/)
    .waitFor();
  expect(problems).toEqual([]);
  await close();
});

test("of volumes only one that belongs to no app can be removed, by its name", async () => {
  const { page, problems, close } = await visit("/backups/volumes");
  const grid = page.getByRole("grid", { name: "Volumes" });
  await grid.getByText(`${appId}.data`).click();
  await page.getByText("/srv/store").waitFor();
  expect(await page.getByRole("button", { name: "Remove the volume" }).count()).toBe(0);
  await page.keyboard.press("Escape");
  await grid.getByText("left-behind").click();
  await page.getByRole("button", { name: "Remove the volume" }).click();
  await page.getByLabel("Type left-behind to confirm").fill("left-behind");
  await page.getByRole("dialog").getByRole("button", { name: "Remove the volume" }).click();
  await eventually(async () => expect(await rig.ask("GET /volumes?q=left-behind&orphaned=true")).toEqual([]));
  expect(problems).toEqual([]);
  await close();
});

describe("every place of backups", () => {
  test("has no finding in any look", { timeout: 240_000 }, async () => {
    const backupId = await backedUp();
    const { page, go, problems, close } = await visit("/backups");
    const { deviceId } = rig.device;
    const found = await findingsInPlaces({ page, go }, [
      ["/backups", "store"],
      [`/backups/${backupId}`, "Checksum"],
      ["/backups/destinations", "Shelf"],
      ["/backups/volumes", `${appId}.data`],
      [`${app}?tab=backups`, "completed"],
      [`/devices/${deviceId}?tab=backups`, "completed"],
      [`/devices/${deviceId}?tab=volumes`, `${appId}.data`],
    ]);
    expect(found).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  test("offers a viewer nothing to change", async () => {
    await rig.tenant.token("viewer");
    const backupId = await backedUp();
    const { page, go, close } = await visit(`/backups/${backupId}`, rig.tenant.ownerId.replace("owner", "viewer"));
    await page.getByText("Checksum").waitFor();
    for (const path of [`/backups/${backupId}`, "/backups/policies", "/backups/destinations", "/backups/volumes"]) {
      await go(path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.locator("[data-skeleton]").first().waitFor({ state: "detached" });
      expect(
        await page
          .getByRole("main")
          .getByRole("button", { name: /Restore|Verify|Create|Add|Test|Remove|Back up|Run|More/ })
          .count(),
        path,
      ).toBe(0);
    }
    await close();
  });
});

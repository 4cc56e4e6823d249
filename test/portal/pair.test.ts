// Pairing in the browser: a machine asks, a person compares and decides, and both see what became of it.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { parse as parseYaml } from "yaml";
import { accessFindings, findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { testOpening } from "../kit/browser/opening.ts";
import { anonymous, asAgent } from "../kit/gateway/world.ts";
import { openMachine } from "../kit/machine/machine.ts";

const { world, chromium } = await openConsole();
const test = testOpening(async () => {
  const tenant = await world.tenant();
  const visitor = await chromium.visitor();
  await visitor.signIn(tenant.ownerId, { tenantId: tenant.tenantId, path: "/pair" });
  return { tenant, ...visitor };
});

const machine = async (name: string, fingerprint = `machine-${randomUUID()}`) => {
  const asked = await world.call(anonymous, "POST", "/v1/pairing/initiate", {
    body: { device_fingerprint: fingerprint, device_name: name, platform: "linux" },
  });
  const { pairing_code: code, comparison, pollToken } = asked.body.data;
  const collect = async () =>
    (await world.call(anonymous, "POST", "/v1/pairing/collect", { body: { pairing_code: code, device_fingerprint: fingerprint, pollToken } })).body.data;
  return { code: code as string, comparison: comparison as string, fingerprint, collect };
};
// biome-ignore lint/suspicious/noExplicitAny: as the gateway answered
const comeOnline = async (identity: any): Promise<void> => {
  const as = asAgent({ agentId: identity.agent_id, tenantId: identity.tenant_id, secret: identity.shared_secret });
  const { status } = await world.call(as, "POST", `/v1/devices/${identity.device_id}/heartbeat`, { body: { cpu: 1 } });
  expect(status).toBe(200);
};
const lookUp = async (page: Page, code: string): Promise<void> => {
  await page.getByLabel("Pairing code").fill(code);
};
/** Goes to a control by the Tab key alone. */
const tabTo = async (page: Page, label: string): Promise<void> => {
  const isThere = `(document.activeElement?.ariaLabel ?? document.activeElement?.labels?.[0]?.textContent ?? document.activeElement?.textContent) === ${JSON.stringify(label)}`;
  for (let steps = 0; steps < 60; steps += 1) {
    if (await page.evaluate<boolean>(isThere)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the Tab key does not lead to ${label}`);
};

describe.concurrent("a code", () => {
  test("leads to the machine, which the person compares and approves; it comes online, and its row appears, without a reload", async ({ open }) => {
    const { page, context, problems } = await open();
    const list = await context.newPage();
    await list.goto("/devices", { waitUntil: "domcontentloaded" });
    await list.getByText("Devices appear here once they are paired.").waitFor();
    const { code, comparison, fingerprint, collect } = await machine("nuc");
    await lookUp(page, ` ${code.toLowerCase().replace("-", " ")} `);
    const card = page.getByRole("article", { name: "nuc" });
    await card.getByText("Name, tags and fingerprint").click();
    for (const fact of [comparison, "nuc", fingerprint]) await card.getByText(fact, { exact: true }).waitFor();
    await card.getByText("linux, from 127.0.0.1").waitFor();
    expect(await accessFindings(page)).toEqual([]);
    await page.getByLabel("Name").fill("kitchen");
    await page.getByRole("combobox", { name: "Tags" }).fill("site:lisbon");
    await page.getByRole("combobox", { name: "Tags" }).press("Enter");
    await page.getByRole("button", { name: "Yes, approve" }).click();
    await page.getByText("kitchen is approved.").waitFor();
    const { status, identity } = await collect();
    expect(status).toBe("activated");
    await comeOnline(identity);
    await page.getByText("kitchen is online.").waitFor();
    const row = list.getByRole("row", { name: /kitchen/ });
    await row.waitFor();
    expect(await row.textContent()).toContain("site:lisbon");
    expect(problems).toEqual([]);
  });

  test("can be looked up, compared and approved by keyboard alone", async ({ open }) => {
    const { page, go } = await open();
    await go("/devices");
    await page.getByRole("heading", { name: "Devices" }).waitFor();
    const { code, collect } = await machine("nuc");
    await page.keyboard.press("g");
    await page.keyboard.press("p");
    await page.getByLabel("Pairing code").waitFor();
    await tabTo(page, "Pairing code");
    await page.keyboard.type(code.replace("-", "").toLowerCase());
    expect(await page.getByLabel("Pairing code").inputValue()).toBe(code);
    await page.getByRole("button", { name: "Yes, approve" }).waitFor();
    await tabTo(page, "Yes, approve");
    await page.keyboard.press("Enter");
    await page.getByText("nuc is approved.").waitFor();
    expect((await collect()).status).toBe("activated");
  });

  test("in the URL is looked up at once", async ({ open }) => {
    const { page } = await open();
    const { code, comparison } = await machine("nuc");
    await page.goto(`/pair?code=${code.toLowerCase()}`, { waitUntil: "domcontentloaded" });
    await page.getByText(comparison).waitFor();
  });

  test("that is wrong, misread, expired, used or rejected is answered with what to do", async ({ open }) => {
    const { page, tenant } = await open();
    await page.getByLabel("Pairing code").waitFor();
    const answered = async (code: string, sentence: string): Promise<void> => {
      await lookUp(page, code);
      await page.getByText(sentence).waitFor();
    };
    await answered("BCDF-GHJK", "No machine waits with this code.");
    await answered("ABCD-1234", "eight letters and no vowels");
    const [expired, used, rejected] = [await machine("old"), await machine("used"), await machine("rejected")];
    await world.sql.query("update pairings set expires_at = now() - interval '1 minute' where fingerprint = $1", [expired.fingerprint]);
    await answered(expired.code, "more than 15 minutes old");
    const owner = await tenant.user();
    expect((await world.call(owner, "POST", "/v1/pairing/approve", { body: { code: used.code } })).status).toBe(201);
    await answered(used.code, "has been used: the machine is paired");
    expect((await world.call(owner, "POST", "/v1/pairing/reject", { body: { code: rejected.code } })).status).toBe(204);
    await answered(rejected.code, "rejected the machine with this code");
  });

  test("of a machine that nobody knows is rejected after a question, and the machine learns it", async ({ open }) => {
    const { page } = await open();
    const { code, collect } = await machine("stranger");
    await lookUp(page, code);
    await page.getByRole("button", { name: "Reject" }).click();
    expect((await collect()).status).toBe("pending");
    await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
    await page.getByText("The machine is rejected.").waitFor();
    expect((await collect()).status).toBe("rejected");
  });

  test("of a machine that is a device already gives that device's identity away only after a confirmation", async ({ open }) => {
    const { page, go, tenant } = await open();
    const { deviceId, fingerprint } = await tenant.device();
    const { code, collect } = await machine("again", fingerprint);
    await go(`/pair?code=${code}`);
    await page.getByText("fingerprint of a device that you already have").waitFor();
    expect(await page.getByRole("button", { name: "Yes, approve" }).isDisabled()).toBe(true);
    await page.getByRole("checkbox", { name: /Give that device's identity/ }).check();
    await page.getByRole("button", { name: "Yes, approve" }).click();
    await page.getByText("is approved.").waitFor();
    expect((await collect()).identity.device_id).toBe(deviceId);
  });
});

describe.concurrent("an enrollment token", () => {
  test("is shown once with a command that pairs the machine on which it runs, and its use counts without a reload", async ({ open }) => {
    const { page, problems } = await open();
    await page.getByRole("button", { name: "Create a token for many" }).click();
    await page.getByLabel("Name", { exact: true }).fill("lisbon");
    await page.getByRole("spinbutton", { name: "Machines" }).fill("1");
    await page.getByRole("dialog").getByRole("button", { name: "Create token" }).click();
    const shown = page.getByRole("dialog").locator("pre");
    const command = await shown.innerText();
    expect(await accessFindings(page)).toEqual([]);
    const asRoot = command.replace("sudo sh", "sh");
    for (const form of ["cloud-init", "Ansible"]) {
      await page.getByRole("button", { name: form, exact: true }).click();
      expect(JSON.stringify(parseYaml(await shown.innerText()))).toContain(asRoot);
    }
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("row", { name: /lisbon.*active.*0 of 1/ }).waitFor();
    const installed = await openMachine();
    expect(await installed.run(`${command} --no-service`)).toMatchObject({ code: 0 });
    await comeOnline(JSON.parse(await readFile(join(installed.data, "identity.json"), "utf8")));
    await installed.remove();
    await page.getByRole("row", { name: /lisbon.*used up.*1 of 1/ }).waitFor();
    expect(problems).toEqual([]);
  });

  test("is revoked after a question", async ({ open }) => {
    const { page, tenant } = await open();
    await world.call(await tenant.user(), "POST", "/v1/pairing/enrollment-tokens", { body: { name: "lisbon" } });
    await page.reload({ waitUntil: "domcontentloaded" });
    await page.getByRole("button", { name: "Revoke lisbon" }).click();
    await page.getByRole("dialog", { name: "Revoke this token?" }).getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("row", { name: /lisbon/ }).waitFor({ state: "detached" });
  });
});

describe.concurrent("the command", () => {
  test("is copied from the overview with two clicks, pairs one machine, which arrives, and the next one has another token", async ({ open }) => {
    const { page, context, problems, go } = await open();
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await go("/");
    await page.getByRole("link", { name: "Pair a device" }).first().click();
    await page.getByRole("button", { name: "Copy the command" }).click();
    await page.getByText("Copied.").waitFor();
    const command = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(command).toMatch(new RegExp(`^curl -fsSL ${world.url}/install\\.sh \\| sudo sh -s -- --token enr_\\S+$`));
    const installed = await openMachine();
    expect(await installed.run(`${command} --name arrives --no-service`)).toMatchObject({ code: 0 });
    const identity = JSON.parse(await readFile(join(installed.data, "identity.json"), "utf8"));
    await page.getByRole("article", { name: "arrives" }).getByText("installs").waitFor();
    await comeOnline(identity);
    await page.getByText("arrives is online.").waitFor();
    await page.getByText("The token of the last command is used up").waitFor();
    await page.getByRole("button", { name: "Docker" }).click();
    await page.getByRole("button", { name: "Copy the command" }).click();
    await page.getByText("Copied.").waitFor();
    const next = await page.evaluate<string>("navigator.clipboard.readText()");
    expect([next.endsWith(" --host compose"), next.includes(command)]).toEqual([true, false]);
    await installed.remove();
    expect(problems).toEqual([]);
  });

  test("with a token that needs approval lists the machine while the page listens; a person compares, approves, and it comes online", async ({ open }) => {
    const { page, problems } = await open();
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByRole("checkbox", { name: "A person approves each machine" }).check();
    await page.getByRole("button", { name: "Use these" }).click();
    await page.getByRole("button", { name: "Copy the command" }).click();
    const pre = page.locator("pre").first();
    await pre.getByText(/--token enr_[\w-]{20,}/).waitFor();
    const command = (await pre.innerText()).replaceAll("\\\n", "");
    const installed = await openMachine();
    const ran = installed.run(`${command} --name waits --no-service`);
    const card = page.getByRole("article", { name: "waits" });
    const digits = await card.getByText(/^\d{3} \d{3}$/).innerText();
    await card.getByRole("button", { name: "Yes, approve" }).click();
    await page.getByText("waits is approved.").waitFor();
    const { code, said } = await ran;
    expect([code, said.includes(`if the page shows ${digits}`)]).toEqual([0, true]);
    await comeOnline(JSON.parse(await readFile(join(installed.data, "identity.json"), "utf8")));
    await page.getByText("waits is online.").waitFor();
    await installed.remove();
    expect(problems).toEqual([]);
  });

  test("is offered for what the gateway serves, and for other machines the way to an agent of one's own", async ({ open }) => {
    const { page } = await open();
    await page.getByRole("button", { name: "macOS" }).click();
    await page.getByText("There is no package of the agent for a Mac.").waitFor();
    expect(await page.locator("pre").count()).toBe(0);
    await page.getByRole("button", { name: "Your own agent" }).click();
    await page.getByRole("button", { name: "Copy the variables" }).click();
    await page.getByText(/MOORING_ENROLLMENT_TOKEN=enr_[\w-]{20,}/).waitFor();
  });
});

test.concurrent("the screen is easy to use for everybody in every look", async ({ open }) => {
  const { page, problems, go, tenant } = await open();
  await page.getByText(`curl -fsSL ${world.url}/install.sh | sudo sh`).waitFor();
  await page.getByText("No machine waits for you.").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  const owner = await tenant.user();
  const { body } = await world.call(owner, "POST", "/v1/pairing/enrollment-tokens", { body: { name: "rack-2", approval: "required", maxUses: 40 } });
  const asks = await machine("nuc-kitchen");
  await world.call(anonymous, "POST", "/v1/pairing/auto-activate", { body: { enrollment_token: body.data.token, pairing_code: asks.code } });
  const approved = await machine("pi-garden");
  const { deviceId } = (await world.call(owner, "POST", "/v1/pairing/approve", { body: { code: approved.code } })).body.data;
  for (const currentStep of ["preflight_check", "docker_install", "downloading"])
    expect((await world.call(anonymous, "PATCH", `/v1/pairing/${approved.code}/progress`, { body: { currentStep } })).status).toBe(200);
  const { code } = await machine("nuc");
  await go(`/pair?code=${code}&device=${deviceId}`);
  for (const name of ["nuc", "nuc-kitchen", "pi-garden"]) await page.getByRole("article", { name, exact: true }).waitFor();
  await page.getByText("download", { exact: true }).waitFor();
  await page.getByRole("row", { name: /rack-2/ }).waitFor();
  expect([await findingsInEveryLook(page), problems]).toEqual([[], []]);
  await go("/pair?form=many");
  await page.getByRole("button", { name: "Create a token for many" }).click();
  await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill("rack-3");
  await page.getByRole("dialog").getByRole("button", { name: "Create token" }).click();
  await page.getByRole("button", { name: "Ansible" }).click();
  expect([await findingsInEveryLook(page), problems]).toEqual([[], []]);
});

test.concurrent("a viewer is told whom to ask, and no call is refused", async () => {
  const tenant = await world.tenant();
  await tenant.user("viewer");
  const other = await chromium.visitor();
  await other.signIn(tenant.ownerId.replace("owner", "viewer"), { tenantId: tenant.tenantId, path: "/pair" });
  await other.page.getByText("Your role does not permit you to see this.").waitFor();
  expect(other.problems).toEqual([]);
  await other.close();
});

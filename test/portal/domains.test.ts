// Custom domains in the browser: the record to set, what was found instead, when somebody looks again, and what a domain leads to.
import { beforeAll, expect, test } from "vitest";
import { findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import type { TestTenant } from "../kit/gateway/world.ts";

const { world, chromium } = await openConsole();
let tenant: TestTenant;
beforeAll(async () => {
  tenant = await world.tenant();
});
const hostname = (): string => `${crypto.randomUUID()}.invalid-domain.example.com`;
const add = async (name: string): Promise<{ readonly domainId: string; readonly verification: { readonly value: string } }> => {
  const { status, body } = await world.call(await tenant.user(), "POST", "/v1/custom-domains", { body: { hostname: name } });
  expect(status, JSON.stringify(body)).toBe(201);
  return body.data;
};

test("a domain is added, shows the records to set and that nothing is there yet, and is removed", { timeout: 120_000 }, async () => {
  const { page, problems, signIn, close } = await chromium.visitor();
  const [tenant, name] = [await world.tenant(), hostname()];
  await signIn(tenant.ownerId, { path: "/network/domains" });
  await page.getByRole("button", { name: "Add a domain" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill(name.toUpperCase());
  await page.getByRole("dialog").getByRole("button", { name: "Add a domain" }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  const [domain] = (await world.call(await tenant.user(), "GET", `/v1/custom-domains?q=${name}`)).body.data;
  const proof = page.getByRole("region", { name: "TXT: Proves that the name is yours" });
  await proof.getByRole("button", { name: `_svc-verify.${name}` }).waitFor();
  await proof.getByRole("button", { name: domain.verification.value }).waitFor();
  await page.getByRole("region", { name: /: Leads visitors here$/ }).waitFor();
  await page.getByText("It leads nowhere yet.").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Remove the domain" }).click();
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await page.getByRole("button", { name: "Remove the domain" }).click();
  await page.getByText("lead visitors to your apps.").waitFor();
  expect(problems).toEqual([]);
  await close();
});

test("what was found, when somebody looks again, and that a check came too soon, stand beside the record", async () => {
  const { domainId } = await add(hostname());
  await world.sql.query(
    "update custom_domains set status = 'degraded', failure = 'DNS_MISMATCH', next_check_at = now() + interval '1 hour', asked_at = now(), checks = $2 where domain_id = $1",
    [domainId, { txt: { status: "fail", expected: "the value", found: ["somebody-elses-value"], at: new Date().toISOString(), resolver: "system" } }],
  );
  const { page, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: `/network/domains/${domainId}` });
  await page.getByText(/^A record that was there is gone\. Visitors are served until in/).waitFor();
  await page
    .getByRole("timer")
    .getByText(/^Looks again/)
    .waitFor();
  await close();
});

test("an invalid name is refused in the form, which keeps it", async () => {
  const { page, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/network/domains" });
  await page.getByRole("button", { name: "Add a domain" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("*.example.com");
  await page.getByRole("dialog").getByRole("button", { name: "Add a domain" }).click();
  await page.getByRole("dialog").getByText("DOMAIN_INVALID").waitFor();
  expect(await page.getByRole("dialog").getByLabel("Name").inputValue()).toBe("*.example.com");
  await close();
});

test("a viewer sees domains and may change none", async () => {
  const name = hostname();
  const { domainId } = await add(name);
  await tenant.token("viewer");
  const { page, signIn, go, close } = await chromium.visitor();
  await signIn(tenant.ownerId.replace("owner", "viewer"), { path: "/network/domains" });
  await page.getByRole("grid", { name: "Domains" }).getByText(name).waitFor();
  await go(`/network/domains/${domainId}`);
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await eventually(async () =>
    expect(
      await page
        .getByRole("main")
        .getByRole("button", { name: /Check|Change|Add|Order|Use|More/ })
        .count(),
    ).toBe(0),
  );
  await close();
});

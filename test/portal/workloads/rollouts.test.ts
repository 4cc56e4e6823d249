// Rollouts in the console: a policy with a preview, a start by its figures, the page of one that stopped, and its abort in two steps.
import { expect, test } from "vitest";
import { findingsInEveryLook } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { holdCalls } from "../../kit/browser/hold-calls.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";

const { world, chromium } = await openConsole();
const DEVICES = 12;

const openFleet = async () => {
  const tenant = await world.tenant();
  const owner = await tenant.user();
  await world.call(owner, "POST", "/v1/devices/provision", { body: { count: DEVICES, tags: ["hall:1"] } });
  const { rows } = await world.sql.query("update devices set status = 'online', agent_version = '1.0.0' where tenant_id = $1 returning device_id", [
    tenant.tenantId,
  ]);
  const deviceIds = rows.map(({ device_id }) => device_id);
  const { fleetId } = (await world.call(owner, "POST", "/v1/fleets", { body: { name: "Hall one", deviceIds } })).body.data;
  return { tenant, owner, fleetId };
};

test("a policy is tried on a fleet before it is saved, with the windows by the zone's clock and by the reader's", async () => {
  const { tenant } = await openFleet();
  const visitor = await chromium.visitor();
  const { page } = visitor;
  await visitor.signIn(tenant.ownerId, { path: "/rollouts/policies" });
  await page.getByRole("button", { name: "New policy" }).first().click();
  await page.getByLabel("Name").fill("Careful");
  await page.getByLabel("Version").fill("9.9.9");
  await page.getByLabel("Phases").fill("5 and then more");
  await page.getByRole("button", { name: "Look what would happen" }).click();
  await page.getByRole("alert").getByText("The phases are numbers of devices").waitFor();
  await page.getByLabel("Phases").fill("2, 50 %, 50 %");
  await page.getByLabel("Maintenance window").fill("30 2 * * *");
  await page.getByLabel("Time zone").fill("Asia/Kolkata");
  await page.getByLabel("Look at it for the fleet").selectOption("Hall one");
  await page.getByRole("button", { name: "Look what would happen" }).click();
  await page.getByText(`${DEVICES} of ${DEVICES} devices would be updated.`).waitFor();
  await page
    .getByText(/ 02:30 \+05:30 Asia\/Kolkata/)
    .first()
    .waitFor();
  // Another choice makes the figures old.
  await page.getByLabel("Devices at once").fill("7");
  await page.getByText("would be updated.").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "New policy" }).last().click();
  await page.getByRole("heading", { name: "Careful" }).waitFor();
  await page.getByText("2, 50 %, 50 %").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test("a policy keeps what each phase has of its own, unless its field is changed", async () => {
  const { tenant, owner } = await openFleet();
  const phases = [
    { count: 4, minSuccessPercent: 100, soakMinutes: 60 },
    { percent: 50, minSuccessPercent: 80, soakMinutes: 5, requireApproval: true },
    { percent: 50, minSuccessPercent: 70, soakMinutes: 0 },
  ];
  const policy = { name: "Uneven", subject: { kind: "agent" }, targetVersion: "9.9.9", phases };
  const made = await world.call(owner, "POST", "/v1/fleets/update-policies", { body: policy });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const { updatePolicyId } = made.body.data;
  const stored = async () => (await world.call(owner, "GET", `/v1/fleets/update-policies/${updatePolicyId}`)).body.data.phases;
  const before = await stored();
  const visitor = await chromium.visitor();
  const { page } = visitor;
  await visitor.signIn(tenant.ownerId, { path: `/rollouts/policies/${updatePolicyId}` });
  const change = async (label: string, value: string): Promise<void> => {
    await page.getByRole("button", { name: "Change", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(label, { exact: true }).fill(value);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  await change("Name", "Still uneven");
  expect(await stored()).toEqual(before);
  await change("Minutes that a phase is watched", "7");
  expect(await stored()).toEqual(before.map((phase: object) => ({ ...phase, soakMinutes: 7 })));
  await visitor.close();
});

test("a rollout starts by its figures, says why it stopped, and is aborted in two steps", async () => {
  const { tenant, owner, fleetId } = await openFleet();
  const policy = { name: "Simple", subject: { kind: "agent" }, targetVersion: "9.9.9", phases: [{ count: 4 }, { percent: 100 }] };
  await world.call(owner, "POST", "/v1/fleets/update-policies", { body: policy });
  const visitor = await chromium.visitor();
  const { page } = visitor;
  await visitor.signIn(tenant.ownerId, { path: "/rollouts" });
  const policies = await holdCalls(page, /rollouts\.listPolicies/);
  await page.getByRole("button", { name: "New rollout" }).first().click();
  const look = page.getByRole("button", { name: "Look what would happen" });
  expect(await look.isDisabled()).toBe(true);
  policies.release();
  await look.click();
  await page.getByRole("button", { name: "Start the rollout" }).waitFor();
  // What was changed since is confirmed by nothing.
  await page.getByLabel("Version").fill("9.9.8");
  await page.getByRole("button", { name: "Start the rollout" }).waitFor({ state: "detached" });
  await page.getByLabel("Version").fill("");
  await page.getByRole("button", { name: "Look what would happen" }).click();
  await page.getByText(`${DEVICES} of ${DEVICES} devices would be updated.`).waitFor();
  await page.getByRole("button", { name: "Start the rollout" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  const rolloutId = page.url().split("/").at(-1)?.split("?")[0] ?? "";

  const failing = async (): Promise<void> => {
    await world.sql.query("update many_work set step_at = now() - interval '1 s' where record_id = $1", [rolloutId]);
    await runJob(world, "many.step");
    await world.sql.query(
      `with ended as (update commands c set status = 'failed', finished_at = now(), sent_at = now(), failure_code = 'DISK_FULL', attempt = 1
         from rollout_devices m where m.rollout_id = $1 and c.command_id = m.command_id and c.finished_at is null returning c.device_id, c.seq)
       delete from command_queue q using ended e where q.device_id = e.device_id and q.seq = e.seq`,
      [rolloutId],
    );
  };
  await eventually(async () => {
    await failing();
    expect((await world.call(owner, "GET", `/v1/rollouts/${rolloutId}`)).body.data.status).toBe("paused");
  }, 15_000);
  await world.sql.query(`update rollout_devices set lines = '["starting", "cannot bind port 80"]' where rollout_id = $1 and status = 'failed'`, [rolloutId]);
  // The widest name that a device can have, without a place to break it.
  await world.sql.query("update devices set name = repeat('W', 64) where device_id in (select device_id from rollout_devices where rollout_id = $1)", [
    rolloutId,
  ]);
  await page.getByText("Too many devices failed.").or(page.getByText("The phase can no longer reach")).first().waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page
    .getByRole("tab", { name: "Failures" })
    .or(page.getByRole("link", { name: "Failures" }))
    .first()
    .click();
  const failures = page.getByRole("region", { name: /DISK_FULL/ });
  await failures.getByText("cannot bind port 80").waitFor();
  expect(await failures.getByRole("link").first().getAttribute("href")).toMatch(/^\/devices\/dev_\w+\?command=cmd_\w+$/);
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("button", { name: "Abort" }).click();
  await page.getByLabel("Reason").fill("the wrong version");
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByRole("button", { name: /Yes, abort it with 0 devices under way/ }).click();
  await page.getByText("aborted", { exact: true }).first().waitFor();
  await visitor.go(`/fleets/${fleetId}`);
  await page.getByRole("grid", { name: "Rollouts of this fleet" }).getByText("agent 9.9.9").waitFor();
  await page.getByLabel("Update policy").selectOption("Simple");
  await page.getByRole("button", { name: "Save the policy" }).click();
  await page.getByText(`0 of ${DEVICES} devices run 9.9.9.`).waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

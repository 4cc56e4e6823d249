// Alerts about real agents: thirty lose their connection at once, and the gateway's own jobs find it, tell of it once, and end it when they return.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { openAgent, type RunningAgent } from "../../kit/gateway/agents.ts";
import { type BreakableWire, openBreakableWire } from "../../kit/stores/breakable-wire.ts";
import { type AlertsRig, openAlerts } from "./kit.ts";

const AGENTS = 30;
let rig: AlertsRig;
let wire: BreakableWire;
beforeAll(async () => {
  rig = await openAlerts();
  wire = await openBreakableWire(rig.world);
});
afterAll(async () => {
  await wire.close();
  await rig.close();
});

/** Until nothing is left to do. */
const runJob = async (name: string): Promise<void> => {
  const job = rig.world.app.jobs.find((each) => each.name === name);
  if (job === undefined) throw new Error(`there is no job ${name}`);
  while ((await job.run(new AbortController().signal)) === true);
};

test(`${AGENTS} agents that fall silent are one alert and one mail, and it resolves when they return`, async () => {
  const { tenant, call, made, alerts, dueNow, eventTypes } = await rig.open();
  const provisioned = (await call("POST", "/devices/provision", { count: AGENTS })).body.data;
  const start = (): RunningAgent[] =>
    provisioned.map(({ device_id: deviceId, agent_id: agentId, shared_secret: secret }: Record<string, string>) => {
      const { agent, stop } = openAgent(wire.url, {
        deviceId: deviceId ?? "",
        identity: { agentId: agentId ?? "", tenantId: tenant.tenantId, secret: secret ?? "" },
      });
      agent.start();
      return { stop };
    });
  const statuses = async (): Promise<string[]> =>
    (await rig.world.sql.query("select distinct status from devices where tenant_id = $1", [tenant.tenantId])).rows.map(({ status }) => status);
  const allAre = (status: string) => eventually(async () => expect(await statuses()).toEqual([status]), 30_000);
  const past = (changes: string) => rig.world.sql.query(`update device_presence set ${changes} where tenant_id = $1`, [tenant.tenantId]);
  await made("/alert-channels", { type: "email", name: "On call", config: { to: ["oncall@users.example"] } });

  const first = start();
  await allAre("online");
  await runJob("devices.offline");
  await runJob("alerts.evaluate");
  expect([await statuses(), await alerts()]).toEqual([["online"], []]);

  // Without a goodbye.
  await wire.down();
  await eventually(async () => {
    const { rows } = await rig.world.sql.query("select 1 from device_presence where tenant_id = $1 and session_id is not null", [tenant.tenantId]);
    expect(rows).toEqual([]);
  });
  await Promise.all(first.map(({ stop }) => stop()));
  await past("offline_after = now() - interval '1 second'");
  await runJob("devices.offline");
  await allAre("offline");
  await runJob("alerts.evaluate");
  expect(await alerts()).toEqual([]);
  await past("last_seen_at = now() - interval '601 seconds'");
  await runJob("alerts.evaluate");
  const [alert, ...more] = await alerts();
  expect(more).toEqual([]);
  expect(alert).toMatchObject({ status: "open", type: "device.offline_seconds", targetCount: AGENTS, activeCount: AGENTS, occurrences: 1 });
  const before = rig.smtp.mails.length;
  await dueNow();
  for (const name of ["alerts.evaluate", "alerts.evaluate", "alerts.notify", "mails.send"]) await runJob(name);
  const [mail, ...others] = rig.smtp.mails.slice(before);
  expect(others).toEqual([]);
  expect(mail?.to).toEqual(["oncall@users.example"]);
  expect(mail?.raw).toContain(`${AGENTS} devices`);

  await wire.restore();
  const second = start();
  await allAre("online");
  await runJob("alerts.evaluate");
  expect(await alerts()).toMatchObject([{ alertId: alert?.alertId, status: "resolved", activeCount: 0, resolvedBy: "auto" }]);
  for (const name of ["alerts.notify", "mails.send"]) await runJob(name);
  expect(rig.smtp.mails.length).toBe(before + 1);
  expect(await eventTypes()).toEqual(["alert.opened", "alert.resolved"]);
  await Promise.all(second.map(({ stop }) => stop()));
}, 120_000);

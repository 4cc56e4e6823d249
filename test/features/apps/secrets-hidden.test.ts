// What the agent of an app says is stored and shown without the app's secrets, however the app or the agent writes them.
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemTime } from "../../../agent-sim/agent/index.ts";
import { createLogHandlers } from "../../../agent-sim/host/log-handlers.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { failureIn, openRig, type Rig, reportOf } from "./kit.ts";
import { createFakeHost, type FakeHost, openViewer } from "./logs-kit.ts";

const SOON = { timeout: 20_000 };
const SECRET = 'tell "nobody" & no-one/ever';
const FORMS = [
  SECRET,
  JSON.stringify(SECRET),
  encodeURIComponent(SECRET),
  ...["", "a", "ab"].map((before) => Buffer.from(`${before}${SECRET}`).toString("base64")),
  Buffer.from(SECRET).toString("hex"),
];
/** Of each form, what no text may contain any more. */
const TRACES = ["nobody", "no-one", "no%2Done", ...FORMS.slice(3).map((form) => form.slice(4, -4))];
const expectClean = (text: string): void => {
  expect(TRACES.filter((trace) => text.includes(trace))).toEqual([]);
  expect(text).toContain("***");
};

let world: World;
const open: { stop(): void | Promise<void> }[] = [];
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_AGENT: "off" }, { settings: { appLogs: { renewEveryMs: 100 } } });
});
afterAll(async () => {
  for (const each of open.toReversed()) await each.stop();
  await world.close();
});

/** A device with an app that has the secret, and its command. */
const deployed = async (options: Parameters<typeof openRig>[1] = {}): Promise<{ readonly rig: Rig; readonly appId: string; readonly commandId: string }> => {
  const rig = await openRig(world, options);
  open.push(rig);
  const { appId, commandId } = await rig.deploy({ secrets: { KV_TOKEN: SECRET } });
  return { rig, appId, commandId };
};
/** All that the database keeps of the tenant, as text; the secret itself is sealed there. */
const stored = async ({ tenant }: Rig): Promise<string> => {
  const { rows: tables } = await world.sql.query(
    "select table_name as name from information_schema.columns where table_schema = 'public' and column_name = 'tenant_id' and table_name not like '%\\_now' order by 1",
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const { rows } = await world.sql.query(`select t::text as row from "${name}" t where tenant_id = $1 limit 1000`, [tenant.tenantId]);
    texts.push(...rows.map(({ row }) => row as string));
  }
  return texts.join("\n");
};

test("the output, the progress and the failure of a command", async () => {
  const { rig, appId, commandId } = await deployed({ online: false });
  const at = `/devices/${rig.device.deviceId}/commands`;
  await rig.ask(`GET ${at}`, undefined, rig.device.as);
  await rig.ask(`POST ${at}/${commandId}/ack`, { status: "running", progress: { pct: 10, message: `with ${SECRET}` } }, rig.device.as);
  const failure = failureIn(1, { message: `cannot start with ${FORMS.join(" ")}`, lines: FORMS.map((form) => `line ${form}`) });
  const output = { app: { ...reportOf(appId, { state: "failed", failure }), own: FORMS }, also: { [FORMS[2] ?? ""]: [FORMS] } };
  await rig.ask(`POST ${at}/${commandId}/ack`, { status: "failed", code: "NO_START", output }, rig.device.as);
  const command = await rig.ask(`GET /commands/${commandId}`);
  expect(command).toMatchObject({ status: "failed", ack: { output: { app: { appId, state: "failed", failure: { reason: "HEALTH_CHECK_FAILED" } } } } });
  expectClean(JSON.stringify(command));
  const app = await rig.ask(`GET /apps/${appId}`);
  expect(app.failure.lines).toEqual(command.ack.output.app.failure.lines);
  expectClean(JSON.stringify(app));
  expectClean(await stored(rig));
});

test("the words of a report stay, although a secret is one of them", async () => {
  const rig = await openRig(world);
  open.push(rig);
  const { deploymentId, commandId } = await rig.deploy({ secrets: { KV_TOKEN: "running" } });
  await rig.until(`/deployments/${deploymentId}`, "active");
  expect((await rig.ask(`GET /commands/${commandId}`)).ack.output.app).toMatchObject({ state: "running", ports: { http: 8_701 } });
});

test("an output that is too long, at the place where it was cut", async () => {
  const { rig, commandId } = await deployed({ online: false });
  const at = `/devices/${rig.device.deviceId}/commands`;
  await rig.ask(`GET ${at}`, undefined, rig.device.as);
  // 64 KiB with the quotes: the first half of the secret is the last that fits.
  const output = `${"x".repeat(65_536 - 2 - 10)}${SECRET}`;
  await rig.ask(`POST ${at}/${commandId}/ack`, { status: "failed", output }, rig.device.as);
  const { ack } = await rig.ask(`GET /commands/${commandId}`);
  expect(ack.output.slice(-5)).toBe("xx***");
});

test("the end of a log and what follows, of an agent that does not mask", async () => {
  const host: FakeHost = createFakeHost();
  let stop = (): void => undefined;
  const { rig, appId } = await deployed({
    handlers: (device) => {
      const call = async (method: string, path: string, body?: unknown) => {
        const given = typeof body === "string" ? { rawBody: body } : { body: body as object };
        const answer = await world.call(device.as, method, path, body === undefined ? {} : given);
        return { status: answer.status, body: answer.body, text: "" } as never;
      };
      const logs = createLogHandlers({ host, time: systemTime, call });
      stop = logs.stop;
      return logs.handlers;
    },
  });
  open.push({ stop: () => stop() });
  await eventually(async () => expect((await rig.ask(`GET /apps/${appId}`)).status).toBe("running"));
  host.write(...FORMS);
  const tail = await rig.ask(`GET /apps/${appId}/logs?tail=50`);
  expect(tail.lines).toHaveLength(FORMS.length);
  expectClean(JSON.stringify(tail));
  const viewer = await openViewer(world.url, `/apps/${appId}/logs/stream`, rig.owner);
  await expect.poll(() => host.followers(), SOON).toBe(1);
  host.write(...FORMS);
  await expect.poll(() => viewer.texts().length, SOON).toBe(FORMS.length);
  viewer.close();
  expectClean(viewer.texts().join("\n"));
});

test("the reason of a failure and the code of a command, in an agent's own words", async () => {
  const { rig, appId, commandId } = await deployed({ online: false });
  const at = `/devices/${rig.device.deviceId}/commands`;
  await rig.ask(`GET ${at}`, undefined, rig.device.as);
  const output = { app: reportOf(appId, { state: "failed", failure: failureIn(1, { reason: `no ${SECRET}` }) }) };
  await rig.ask(`POST ${at}/${commandId}/ack`, { status: "failed", code: `AT ${SECRET}`, output }, rig.device.as);
  expect((await rig.ask(`GET /commands/${commandId}`)).failureCode).toBe("AT ***");
  expect((await rig.ask(`GET /apps/${appId}`)).failure.reason).toBe("no ***");
  expectClean(await stored(rig));
});

test("a reason that the protocol knows stays, although a secret is the same word", async () => {
  const rig = await openRig(world, { online: false });
  open.push(rig);
  const { appId, commandId } = await rig.deploy({ secrets: { KV_TOKEN: "HEALTH_CHECK_FAILED" } });
  const at = `/devices/${rig.device.deviceId}/commands`;
  await rig.ask(`GET ${at}`, undefined, rig.device.as);
  const output = { app: reportOf(appId, { state: "failed", failure: failureIn(1) }) };
  await rig.ask(`POST ${at}/${commandId}/ack`, { status: "failed", output }, rig.device.as);
  expect((await rig.ask(`GET /apps/${appId}`)).failure.reason).toBe("HEALTH_CHECK_FAILED");
});

test("what an agent reports to have happened on the device", async () => {
  const { rig } = await deployed();
  const event = { type: "app.crashed", severity: "warning", timestamp: new Date().toISOString() };
  const details = { why: `exited after ${SECRET}`, forms: FORMS, nested: { [FORMS[2] ?? ""]: 1 } };
  expect(await rig.ask("POST /agent/events", { events: [{ ...event, details }, event] }, rig.device.as)).toEqual({ accepted: 2 });
  const told = await stored(rig);
  expect(told).toContain("exited after ***");
  expectClean(told);
});

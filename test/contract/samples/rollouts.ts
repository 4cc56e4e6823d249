// Update policies and rollouts for samples, in the states that steps would have brought them to, and what each error code of theirs needs.
import { newId } from "../../../server/core/ids.ts";
import type { Stock } from "../stock.ts";

type Input = Record<string, unknown>;
export const SETTINGS = { subject: { kind: "agent" }, targetVersion: "9.9.9" };
const PHASE = { size: 1, tag: null, minSuccessPercent: 90, soakMinutes: 0, requireApproval: false, startedAt: null, soakUntil: null, finishedAt: null };
const FIGURES = { succeeded: 0, failed: 1, open: 0, tolerated: 0, waiting: 0, late: 0, left: 0 };
const STORED = {
  subject: { kind: "agent", channel: "stable" },
  targetVersion: "9.9.9",
  configuration: null,
  phases: [50, 50].map((percent) => ({ percent, count: null, tag: null, minSuccessPercent: 90, soakMinutes: 0, requireApproval: false })),
  maxParallel: 50,
  failureThreshold: { percent: 10, count: null, minSample: null },
  onFailure: "pause",
  maintenanceWindows: [],
  offlinePolicy: "later",
  offlineWaitHours: 72,
  deviceTimeoutMinutes: 60,
  retries: 1,
  approval: { required: false, byOther: false },
  newDevices: "ignore",
};

const post = async ({ world, owner }: Stock, path: string, body: object): Promise<Record<string, string>> => {
  const answer = await world.call(owner, "POST", path, { body });
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body.data;
};

const fleetOf = async (stock: Stock): Promise<string> => {
  const { fleetId = "" } = await post(stock, "/v1/fleets", { name: "updated", deviceIds: [stock.device.deviceId] });
  return fleetId;
};
const aPolicy =
  (more: Input = {}) =>
  async (stock: Stock) => ({ updatePolicyId: (await post(stock, "/v1/fleets/update-policies", { name: "sample", ...SETTINGS }))["updatePolicyId"], ...more });

/** With the stock's device, which has failed. */
export const newRollout = async (
  { world, tenant, device }: Pick<Stock, "world" | "tenant" | "device">,
  { status = "running", phase = 1, settings = {} as object, subject = "agent", createdBy = "user:u" } = {},
): Promise<string> => {
  const rolloutId = newId("rlt");
  const phases = [1, 2].map((each) => ({ ...PHASE, ...FIGURES, phase: each, status: each === 1 && phase > 0 ? "running" : "pending" }));
  await world.sql.query(
    `insert into rollouts (rollout_id, tenant_id, name, fleet_id, subject, settings, target, conflicts, status, phase, phases, total, failed, created_by)
     values ($1, $2, 'sample', $3, $4, $5, '{"version": "9.9.9", "contentHash": null}', 'skip', $6, $7, $8, 1, 1, $9)`,
    [rolloutId, tenant.tenantId, newId("flt"), subject, JSON.stringify({ ...STORED, ...settings }), status, phase, JSON.stringify(phases), createdBy],
  );
  await world.sql.query(
    `insert into rollout_devices (tenant_id, rollout_id, device_id, subject, position, status, code, attempt, finished_at) values ($1, $2, $3, $4, 1, 'failed', 'FAILED', 1, now())`,
    [tenant.tenantId, rolloutId, device.deviceId, subject],
  );
  return rolloutId;
};
const aRollout =
  (state: Parameters<typeof newRollout>[1] = {}, more: Input = {}) =>
  async (stock: Stock) => ({ rolloutId: await newRollout(stock, state), ...more });
const aDraft =
  (more: Input = {}) =>
  async (stock: Stock) => ({
    rolloutId: (await post(stock, "/v1/rollouts", { fleetId: await fleetOf(stock), settings: SETTINGS, conflicts: "skip" }))["rolloutId"],
    ...more,
  });
const wanted = async (stock: Stock) => ({ fleetId: await fleetOf(stock), settings: SETTINGS, conflicts: "skip" });
const ofApp = { subject: "app:key-value", settings: { subject: { kind: "app", template: "key-value" } } };

export const ROLLOUT_SAMPLES = {
  "rollouts.listPolicies": async () => ({}),
  "rollouts.getPolicy": aPolicy(),
  "rollouts.createPolicy": async () => ({ name: "sample", ...SETTINGS }),
  "rollouts.updatePolicy": aPolicy({ maxParallel: 5 }),
  "rollouts.removePolicy": aPolicy(),
  "rollouts.previewPolicy": async (stock: Stock) => ({ policy: SETTINGS, fleetId: await fleetOf(stock) }),
  "rollouts.list": async () => ({}),
  "rollouts.get": aRollout(),
  "rollouts.wait": aRollout({}, { status: ["running"], timeout: 0 }),
  "rollouts.devices": aRollout(),
  "rollouts.failures": aRollout(),
  "rollouts.steps": aRollout(),
  "rollouts.preview": wanted,
  "rollouts.create": wanted,
  "rollouts.start": aDraft(),
  "rollouts.pause": aRollout({}, { reason: "the line is down" }),
  "rollouts.resume": aRollout({ status: "paused" }),
  "rollouts.approve": aRollout({ status: "awaiting_approval" }),
  "rollouts.reject": aRollout({ status: "awaiting_approval" }, { reason: "not on a Friday" }),
  "rollouts.promote": aRollout({}, { reason: "the rest can wait no longer" }),
  "rollouts.abort": aRollout({}, { reason: "the version is broken" }),
  "rollouts.retryFailed": aRollout({ status: "paused" }),
  "rollouts.rollback": aRollout({ status: "paused", ...ofApp }),
};

interface At {
  readonly stock: Stock;
}
type Asked = readonly [method: string, path: string, body?: object];

/** What each error code of fleets and rollouts needs before the call that it answers. */
export const fleetErrors = <S extends At, P>(ask: (at: S, probe: P, asked: Asked) => Promise<void>) => {
  const refused = (asked: Asked) => (at: S, probe: P) => ask(at, probe, asked);
  const prepared = (prepare: (stock: Stock) => Promise<Asked>) => async (at: S, probe: P) => ask(at, probe, await prepare(at.stock));
  const windowed = (window: object) =>
    refused(["POST", "/fleets/update-policies", { name: "sample", ...SETTINGS, maintenanceWindows: [{ durationMinutes: 60, ...window }] }]);
  return {
    FLEET_NOT_FOUND: refused(["GET", "/fleets/flt_unknown"]),
    FLEET_IN_USE: prepared(async (stock) => {
      const { fleetId } = await post(stock, "/v1/fleets", { name: "used" });
      await post(stock, "/v1/api-keys", { name: "limited", selector: { fleetIds: [fleetId] } });
      return ["DELETE", `/fleets/${fleetId}`];
    }),
    UPDATE_POLICY_NOT_FOUND: refused(["GET", "/fleets/update-policies/upl_unknown"]),
    ROLLOUT_NOT_FOUND: refused(["GET", "/rollouts/rlt_unknown"]),
    UPDATE_POLICY_IN_USE: prepared(async (stock) => {
      const { updatePolicyId } = await aPolicy()(stock);
      await stock.world.call(stock.owner, "PATCH", `/v1/fleets/${await fleetOf(stock)}`, { body: { updatePolicyId } });
      return ["DELETE", `/fleets/update-policies/${updatePolicyId}`];
    }),
    ROLLOUT_CONFLICT: prepared(async (stock) => {
      const [rolloutId, { deviceId }] = [await newRollout(stock), await stock.tenant.device()];
      const taken = "insert into rollout_devices (tenant_id, rollout_id, device_id, subject, position, status) values ($1, $2, $3, 'agent', 2, 'pending')";
      await stock.world.sql.query(taken, [stock.tenant.tenantId, rolloutId, deviceId]);
      const { fleetId } = await post(stock, "/v1/fleets", { name: "taken", deviceIds: [deviceId] });
      return ["POST", "/rollouts", { fleetId, settings: SETTINGS, start: true }];
    }),
    APPROVAL_REQUIRED: prepared(async (stock) => {
      const approval = { required: true, byOther: true };
      const rolloutId = await newRollout(stock, { status: "awaiting_approval", settings: { approval }, createdBy: `user:${stock.tenant.ownerId}` });
      return ["POST", `/rollouts/${rolloutId}/approve`, {}];
    }),
    CRON_INVALID: windowed({ cron: "0 2 * * *", timezone: "Mars/Olympus" }),
    WINDOW_NEVER_OPENS: windowed({ cron: "0 0 30 2 *", timezone: "UTC" }),
    UPDATE_VERSION_UNKNOWN: prepared(async (stock) => ["POST", "/rollouts", { fleetId: await fleetOf(stock), settings: { subject: { kind: "agent" } } }]),
    ROLLBACK_NOT_POSSIBLE: refused(["POST", "/fleets/update-policies", { name: "sample", ...SETTINGS, onFailure: "rollback" }]),
  };
};

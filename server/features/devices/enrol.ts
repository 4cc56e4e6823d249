// Pairs devices in the caller's transaction: new machines become devices, known ones of the same tenant get a new secret.
import { type AgentId, CLOSE, contract, type DeviceId, type TenantId } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import { newId, newSecret } from "../../core/ids.ts";
import type { Evictor } from "../../core/ports/agent-sessions.ts";
import type { DeviceRef } from "../../core/ports/delivery.ts";
import type { SecurityWatch } from "../../core/ports/security.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import type { DeploymentGroups } from "../deployments/index.ts";
import type { Agents } from "./agent-registry.ts";
import { secretContext } from "./rules.ts";
import type { DeviceSettings } from "./settings.ts";
import { signatureVersionChanged } from "./signature-lock.ts";
import { type ExistingDevice, findByFingerprints, findUnused, insertDevices, type NewDevice, replaceSecrets } from "./store/enrol.ts";
import { fencePresence } from "./store/presence.ts";

export interface Enrolment {
  readonly fingerprint: string;
  readonly name?: string | undefined;
  readonly platform?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly deploymentId?: string | undefined;
}

export interface Enrolled {
  readonly device_id: DeviceId;
  readonly agent_id: AgentId;
  readonly tenant_id: TenantId;
  readonly shared_secret: string;
  readonly fingerprint: string;
}

/** Throws PLAN_LIMIT_EXCEEDED when `adding` more do not fit. */
export interface PlanGuard {
  require(tx: Tx, scope: SystemScope, resource: "hosts", adding: number): Promise<void>;
}

/** Cancels the device's open commands in the given transaction (T24). Call `notify` after the commit: it updates live views. */
export type ResetCommands = (tx: Tx, device: DeviceRef, reason: string) => Promise<{ readonly notify: () => void }>;

export interface EnrolDeps {
  readonly emit: Emit;
  readonly box: Pick<SecretBox, "seal">;
  readonly plan: PlanGuard;
  readonly deployments: Pick<DeploymentGroups, "findForDevices">;
  readonly agents: Pick<Agents, "announce">;
  readonly evictor: Evictor;
  readonly resetCommands: ResetCommands;
  readonly watch: SecurityWatch;
  readonly settings: DeviceSettings;
}

/** Which existing devices a machine with their fingerprint may take over, and what the event records of it. */
export interface Replacement {
  readonly means: "code" | "enrollment_token" | "provisioning";
  /** The user, token or system that allowed it. */
  readonly actor: string;
  /** Null allows none. */
  readonly allowed: DeviceId | "any" | "in_repair" | null;
}

/**
 * Pairs up to 1,000 devices and returns one per fingerprint, in order. Throws DEVICE_ALREADY_PAIRED when a fingerprint belongs to a device that must
 * not be replaced. Sends hints about replaced secrets before the commit: a rollback then costs those agents one reconnect.
 */
export type Enrol = (tx: Tx, scope: SystemScope, devices: readonly Enrolment[], replacement?: Replacement) => Promise<readonly Enrolled[]>;

const NOBODY: Replacement = { means: "provisioning", actor: "system", allowed: null };

// Another transaction may pair or remove the same machine meanwhile; then we read the devices again.
const ATTEMPTS = 3;

export const createEnrol = (deps: EnrolDeps): Enrol => {
  const { emit, box, plan, deployments, agents, evictor, settings } = deps;
  const { created, pairedAgain, secretsRotated } = contract.devices.events;

  const add = async (tx: Tx, scope: SystemScope, wanted: readonly Enrolment[]): Promise<readonly Enrolled[]> => {
    if (wanted.length === 0) return [];
    // The default deployment replaces one that is not the tenant's.
    const { standard, own } = await deployments.findForDevices(tx, scope, [...new Set(wanted.flatMap(({ deploymentId }) => deploymentId ?? []))]);
    const made = wanted.map((device) => ({ device, secret: newSecret(), deviceId: newId("dev"), agentId: newId("agt") }));
    const rows: readonly NewDevice[] = made.map(({ device, secret, deviceId, agentId }) => ({
      deviceId,
      agentId,
      fingerprint: device.fingerprint,
      name: device.name ?? null,
      platform: device.platform ?? null,
      tags: device.tags ?? [],
      deploymentId: device.deploymentId !== undefined && own.has(device.deploymentId) ? device.deploymentId : standard,
      sealed: box.seal(secret, secretContext(scope.tenantId, deviceId)),
    }));
    const added = await insertDevices(tx, scope, rows);
    const fresh = made.filter(({ deviceId }) => added.has(deviceId));
    if (fresh.length > 0)
      await emit(
        tx,
        fresh.map(({ deviceId }) => happened(scope, created, deviceId, { deviceId, status: "provisioning", previous: null })),
      );
    return fresh.map(({ device, secret, deviceId, agentId }) => ({
      device_id: deviceId,
      agent_id: agentId,
      tenant_id: scope.tenantId,
      shared_secret: secret,
      fingerprint: device.fingerprint,
    }));
  };

  const renew = async (
    tx: Tx,
    scope: SystemScope,
    pairs: readonly { readonly known: ExistingDevice; readonly device: Enrolment }[],
    { means, actor, allowed }: Replacement,
  ): Promise<readonly Enrolled[]> => {
    const [first] = pairs;
    if (first === undefined) return [];
    if (allowed === null) throw alreadyPaired(scope, first.known);
    // Fences the older sessions first, because every transaction locks presence before devices.
    const fenced = await fencePresence(tx, scope, { deviceIds: pairs.map(({ known }) => known.device_id), graceMs: settings.closeGraceMs });
    const made = pairs.map(({ known, device }) => ({ known, device, secret: newSecret() }));
    const replaced = await replaceSecrets(tx, scope, {
      allowed,
      devices: made.map(({ known, device, secret }) => ({
        deviceId: known.device_id,
        sealed: box.seal(secret, secretContext(scope.tenantId, known.device_id)),
        name: device.name ?? null,
        platform: device.platform ?? null,
      })),
    });
    const renewed = made.filter(({ known }) => replaced.has(known.device_id));
    // The next round adds a device that was removed meanwhile. Any other device that was not replaced may not be taken over.
    const refused = await findByFingerprints(
      tx,
      scope,
      made.filter(({ known }) => !replaced.has(known.device_id)).map(({ known }) => known.fingerprint),
    );
    if (refused[0] !== undefined) throw alreadyPaired(scope, refused[0]);
    // The caller commits, so live views learn of this from the events only.
    for (const { known } of renewed) await deps.resetCommands(tx, { tenantId: scope.tenantId, deviceId: known.device_id }, "paired_again");
    await emit(
      tx,
      renewed.flatMap(({ known: { device_id: deviceId, fingerprint, last_seen_at: lastSeen } }) => [
        happened(scope, pairedAgain, deviceId, { deviceId, fingerprint, means, actor, ip: scope.ip, lastSeen: lastSeen?.toISOString() }),
        happened(scope, secretsRotated, deviceId, { deviceId }),
      ]),
    );
    for (const { known } of renewed)
      deps.watch.note({
        type: "device.fingerprint_changed",
        tenantId: scope.tenantId,
        ipAddress: scope.ip ?? null,
        reason: means,
        entityType: "device",
        entityId: known.device_id,
      });
    const unlocked = renewed.filter(({ known }) => replaced.get(known.device_id)?.unlocked === true);
    if (unlocked.length > 0)
      await emit(
        tx,
        unlocked.map(({ known }) => signatureVersionChanged({ tenant_id: scope.tenantId, device_id: known.device_id, version: 1, actor: "pairing" })),
      );
    agents.announce(renewed.map(({ known }) => known.agent_id));
    for (const { device_id, epoch } of fenced) if (replaced.has(device_id)) evictor.evict(device_id, { close: CLOSE.secretRotated, epochBelow: epoch });
    return renewed.map(({ known, secret }) => ({
      device_id: known.device_id,
      agent_id: known.agent_id,
      tenant_id: scope.tenantId,
      shared_secret: secret,
      fingerprint: known.fingerprint,
    }));
  };

  const round = async (tx: Tx, scope: SystemScope, wanted: readonly Enrolment[], replacement: Replacement): Promise<readonly Enrolled[]> => {
    const existing = new Map(
      (
        await findByFingerprints(
          tx,
          scope,
          wanted.map(({ fingerprint }) => fingerprint),
        )
      ).map((row) => [row.fingerprint, row]),
    );
    const fresh = wanted.filter(({ fingerprint }) => !existing.has(fingerprint));
    if (fresh.length > 0) await plan.require(tx, scope, "hosts", fresh.length);
    const pairs = wanted.flatMap((device) => {
      const row = existing.get(device.fingerprint);
      return row === undefined ? [] : [{ known: row, device }];
    });
    return [...(await renew(tx, scope, pairs, replacement)), ...(await add(tx, scope, fresh))];
  };

  return async (tx, scope, devices, replacement = NOBODY) => {
    const wanted = new Map(devices.map((device) => [device.fingerprint, device]));
    const done = new Map<string, Enrolled>();
    for (let attempt = 0; attempt < ATTEMPTS && done.size < wanted.size; attempt += 1) {
      for (const enrolled of await round(
        tx,
        scope,
        [...wanted.values()].filter(({ fingerprint }) => !done.has(fingerprint)),
        replacement,
      ))
        done.set(enrolled.fingerprint, enrolled);
    }
    if (done.size < wanted.size) throw new AppError("SERVICE_UNAVAILABLE", { retryAfter: 1, details: { reason: "pairing_contended" } });
    return [...wanted.keys()].flatMap((fingerprint) => done.get(fingerprint) ?? []);
  };
};

const alreadyPaired = ({ tenantId }: SystemScope, { device_id: deviceId, fingerprint, last_seen_at }: ExistingDevice): AppError =>
  new AppError("DEVICE_ALREADY_PAIRED", {
    details: { deviceId, fingerprint, lastSeen: last_seen_at?.toISOString() ?? null },
    about: { tenantId, entityType: "device", entityId: deviceId },
  });

/** Returns the same identity again as long as nobody has used it, because the first answer may have been lost. Null once the device has called. */
export type Reissue = (tx: Tx, scope: SystemScope, deviceId: DeviceId) => Promise<Enrolled | null>;

export const createReissue =
  (box: Pick<SecretBox, "open">): Reissue =>
  async (tx, scope, deviceId) => {
    const row = await findUnused(tx, scope, deviceId);
    if (row === undefined) return null;
    const { agent_id, fingerprint, secret } = row;
    return { device_id: deviceId, agent_id, tenant_id: scope.tenantId, fingerprint, shared_secret: box.open(secret, secretContext(scope.tenantId, deviceId)) };
  };

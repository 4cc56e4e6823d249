// The secret with which a device signs, and its rotation: the old secret stays valid until the first use of the new one, unless somebody revokes it.
import { createHash } from "node:crypto";
import { CLOSE, contract, type DeviceId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { Handlers, KeyedCall } from "../../core/feature.ts";
import { newSecret } from "../../core/ids.ts";
import type { Evictor } from "../../core/ports/agent-sessions.ts";
import { type AuditEntry, type AuditTrail, auditActorOf } from "../../core/ports/audit.ts";
import type { CommandOrder, Enqueue } from "../../core/ports/delivery.ts";
import type { SecuritySignal, SecurityWatch } from "../../core/ports/security.ts";
import { actorOf, type Principal, type TenantScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import type { Agents } from "./agent-registry.ts";
import { secretContext } from "./rules.ts";
import type { SignatureLock } from "./signature-lock.ts";
import { beginRotation, findSecrets, replaceSecret, type SecretRow } from "./store/agents.ts";
import { fencePresence } from "./store/presence.ts";

type SecretHandlers = Pick<Handlers<typeof contract.devices>, "secrets" | "rotateSecret" | "liftSignatureLock">;
type Rotation = Pick<KeyedCall<typeof contract.devices.operations.rotateSecret>, "scope" | "commit">;
interface SecretDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly audit: AuditTrail;
  readonly watch: SecurityWatch;
  readonly secrets: Pick<SecretBox, "seal" | "open">;
  readonly evictor: Evictor;
  readonly enqueue: Enqueue;
  /** How long after its session ended a device counts as offline. */
  readonly graceMs: number;
}

/** The key orders one command per pending secret. */
const rotationOrder = (deviceId: DeviceId, pendingSecret: Uint8Array): CommandOrder => ({
  deviceId,
  type: "svc.rotate-secret",
  key: `rotation:${createHash("sha256").update(pendingSecret).digest("base64url")}`,
  orderedBy: "system",
});

const isAgent = (principal: Principal): boolean => principal.kind === "agent";
const unknown = (deviceId: string): AppError => new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });

/** A read is no change, but whoever has read a secret can change everything in the device's name. */
const readOf = (scope: TenantScope, deviceId: string): AuditEntry => {
  const { tenantId, principal } = scope;
  return { tenantId, actor: auditActorOf(principal), action: "devices.secrets", resource: { type: "devices", id: deviceId }, code: null, call: scope };
};

const signalOf = ({ tenantId, principal, ip }: TenantScope, deviceId: string): SecuritySignal => {
  const reader =
    principal.kind === "user" ? ({ entityType: "user", entityId: principal.userId } as const) : ({ entityType: "key", entityId: actorOf(principal) } as const);
  return { type: "secrets.read", tenantId, ...reader, ipAddress: ip, reason: deviceId, operation: "devices.secrets" };
};

interface SecretParts {
  readonly agents: Pick<Agents, "announce">;
  readonly signatureLock: Pick<SignatureLock, "lift">;
}

export const createSecretHandlers = (deps: SecretDeps, { agents, signatureLock }: SecretParts): SecretHandlers => {
  const { db, secrets: box } = deps;
  const find = async (scope: TenantScope, deviceId: string, clients: Clients = db): Promise<SecretRow> => {
    const row = await findSecrets(clients, scope, deviceId);
    if (row === null) throw unknown(deviceId);
    return row;
  };
  const open = (scope: TenantScope, deviceId: string, sealed: Uint8Array): string => box.open(sealed, secretContext(scope.tenantId, deviceId));

  /** Returns the secret to the agent only. */
  const answerTo = (scope: TenantScope, secret: () => string, message: string) => ({
    success: true as const,
    message,
    ...(isAgent(scope.principal) ? { sharedSecret: secret() } : {}),
  });

  const revoke = ({ scope, commit }: Rotation, deviceId: DeviceId) =>
    commit(async (tx, afterwards) => {
      const fresh = newSecret();
      const { agentId } = await find(scope, deviceId, tx);
      // The eviction below is a hint; if it is lost, the node closes the old secret's socket at its next presence flush.
      await fencePresence(tx, scope, { deviceIds: [deviceId], graceMs: deps.graceMs });
      const sealed = box.seal(fresh, secretContext(scope.tenantId, deviceId));
      if (!(await replaceSecret(tx, scope, { deviceId, sealed }, deps.clock.now()))) throw unknown(deviceId);
      // The person who installs the new secret may install an older agent too, and signatures of the revoked secret no longer matter.
      if (!isAgent(scope.principal)) await signatureLock.lift(tx, { tenantId: scope.tenantId, deviceId }, actorOf(scope.principal));
      await deps.emit(tx, [happened(scope, contract.devices.events.secretsRotated, deviceId, { deviceId })]);
      afterwards(() => {
        agents.announce([agentId]);
        deps.evictor.evict(deviceId, { close: CLOSE.secretRotated });
      });
      return answerTo(scope, () => fresh, "The old secret is dead; the device needs the new one.");
    });

  const rotate = ({ scope, commit }: Rotation, deviceId: DeviceId) =>
    commit(async (tx, afterwards) => {
      const began = await beginRotation(tx, scope, { deviceId, sealed: box.seal(newSecret(), secretContext(scope.tenantId, deviceId)) });
      const row = await find(scope, deviceId, tx);
      // An agent that rotates by itself needs no command. A repeated call orders it, because the agent may have begun the pending rotation.
      const ordered =
        isAgent(scope.principal) || row.pendingSecret === null ? null : await deps.enqueue(tx, scope, [rotationOrder(deviceId, row.pendingSecret)]);
      afterwards(() => {
        ordered?.notify();
        agents.announce([row.agentId]);
      });
      // The agent may repeat the call, because the first answer may have been lost.
      if (isAgent(scope.principal))
        return answerTo(
          scope,
          () => open(scope, deviceId, row.pendingSecret ?? row.secret),
          "Sign with the new secret; the first good signature ends the old one.",
        );
      // Returns the error instead of throwing it, so the order above commits.
      if (!began) return new AppError("ROTATION_IN_PROGRESS", { details: { deviceId } });
      return answerTo(scope, () => "", "The rotation has begun; the agent is told to take the new secret.");
    });

  return {
    secrets: async ({ scope }, { deviceId }) => {
      const row = await find(scope, deviceId);
      // A person who reads the secret can act as the device, so an event records it.
      if (!isAgent(scope.principal)) {
        const data = { deviceId, actor: actorOf(scope.principal) };
        await db.sqlTx(async (tx) => {
          await deps.emit(tx, [happened(scope, contract.devices.events.secretsRead, deviceId, data)]);
          await deps.audit.append(tx, readOf(scope, deviceId));
        });
        deps.watch.note(signalOf(scope, deviceId));
      }
      // An agent gets the pending secret of a rotation that somebody else began and completes the rotation by signing with it.
      const sealed = isAgent(scope.principal) ? (row.pendingSecret ?? row.secret) : row.secret;
      return {
        deviceId,
        timestamp: row.secretRotatedAt.toISOString(),
        secrets: { TENANT_ID: scope.tenantId, DEVICE_ID: deviceId, AGENT_ID: row.agentId, DEVICE_TOKEN: open(scope, deviceId, sealed) },
      };
    },
    liftSignatureLock: ({ scope, commit }, { deviceId }) =>
      commit(async (tx) => {
        if (!(await signatureLock.lift(tx, { tenantId: scope.tenantId, deviceId }, actorOf(scope.principal)))) throw unknown(deviceId);
        return null;
      }),
    rotateSecret: (call, { deviceId, revoke: atOnce }) => (atOnce ? revoke(call, deviceId) : rotate(call, deviceId)),
  };
};

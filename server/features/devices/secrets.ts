// The secret a device signs with, and its rotation: the old one stays good until the new one is used for the first time, unless it is revoked.
import { createHash } from "node:crypto";
import { CLOSE, contract, type DeviceId } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { CommandOrder } from "../../core/delivery.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers, KeyedCall } from "../../core/feature.ts";
import { newSecret } from "../../core/ids.ts";
import { actorOf, type Principal, type TenantScope } from "../../core/scope.ts";
import type { Agents } from "./agent-registry.ts";
import type { DevicesDeps } from "./index.ts";
import { secretContext } from "./rules.ts";
import type { SignatureLock } from "./signature-lock.ts";
import { beginRotation, findSecrets, replaceSecret, type SecretRow } from "./store/agents.ts";
import { fencePresence } from "./store/presence.ts";

type SecretHandlers = Pick<Handlers<typeof contract.devices>, "secrets" | "rotateSecret" | "liftSignatureLock">;
type Rotation = Pick<KeyedCall<typeof contract.devices.operations.rotateSecret>, "scope" | "commit">;
type SecretDeps = Pick<DevicesDeps, "db" | "emit" | "secrets" | "evictor" | "enqueue"> & {
  /** From the end of a session to calling its device offline. */
  readonly graceMs: number;
};

/** Once for each waiting secret. */
const rotationOrder = (deviceId: DeviceId, pendingSecret: Uint8Array): CommandOrder => ({
  deviceId,
  type: "svc.rotate-secret",
  key: `rotation:${createHash("sha256").update(pendingSecret).digest("base64url")}`,
  orderedBy: "system",
});

const isAgent = (principal: Principal): boolean => principal.kind === "agent";
const unknown = (deviceId: string): AppError => new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });

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

  /** Only the agent itself is handed the secret. */
  const answerTo = (scope: TenantScope, secret: () => string, message: string) => ({
    success: true as const,
    message,
    ...(isAgent(scope.principal) ? { sharedSecret: secret() } : {}),
  });

  const revoke = ({ scope, commit }: Rotation, deviceId: DeviceId) =>
    commit(async (tx, afterwards) => {
      const fresh = newSecret();
      const { agentId } = await find(scope, deviceId, tx);
      // The eviction below is a hint: without it the socket that the old secret opened ends at its node's next flush.
      await fencePresence(tx, scope, { deviceIds: [deviceId], graceMs: deps.graceMs });
      if (!(await replaceSecret(tx, scope, { deviceId, sealed: box.seal(fresh, secretContext(scope.tenantId, deviceId)) }))) throw unknown(deviceId);
      // Whoever brings the new secret to the device may bring an older agent along; what was signed with the dead one is worth nothing.
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
      // The agent that rotates by itself needs not be told. A rotation under way is told of again: it may be one of those.
      const ordered =
        isAgent(scope.principal) || row.pendingSecret === null ? null : await deps.enqueue(tx, scope, [rotationOrder(deviceId, row.pendingSecret)]);
      afterwards(() => {
        ordered?.notify();
        agents.announce([row.agentId]);
      });
      // The agent may ask again: its answer may have been lost on the way.
      if (isAgent(scope.principal))
        return answerTo(
          scope,
          () => open(scope, deviceId, row.pendingSecret ?? row.secret),
          "Sign with the new secret; the first good signature ends the old one.",
        );
      // Returned, not thrown: the order above stands.
      if (!began) return new AppError("ROTATION_IN_PROGRESS", { details: { deviceId } });
      return answerTo(scope, () => "", "The rotation has begun; the agent is told to take the new secret.");
    });

  return {
    secrets: async ({ scope }, { deviceId }) => {
      const row = await find(scope, deviceId);
      // Whoever reads it can act as the device from now on.
      if (!isAgent(scope.principal)) {
        const data = { deviceId, actor: actorOf(scope.principal) };
        await db.sqlTx((tx) => deps.emit(tx, [happened(scope, contract.devices.events.secretsRead, deviceId, data)]));
      }
      // An agent that reads its secrets learns of a rotation that somebody else began, and takes it over by signing with it.
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

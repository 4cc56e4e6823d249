// Credentials of agents: their sealed secrets and the rotation of these.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { AgentId, DeploymentId, DeviceId, TenantId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

export interface AgentRow {
  readonly agent_id: AgentId;
  readonly device_id: DeviceId;
  readonly tenant_id: TenantId;
  readonly deployment_id: DeploymentId;
  readonly secret: Uint8Array;
  readonly pending_secret: Uint8Array | null;
  /** 2: the gateway refuses v1 signatures. */
  readonly min_sig_version: number;
  readonly removed: boolean;
  readonly tenant_status: string;
}

const AGENT = `select d.agent_id, d.device_id, d.tenant_id, d.deployment_id, d.secret, d.pending_secret, d.min_sig_version, d.deleted_at is not null as removed, t.status as tenant_status
  from devices d join tenants t on t.tenant_id = d.tenant_id`;

const FIND_AGENTS = statement<AgentRow>("agents.find", `${AGENT} where d.agent_id = any($1)`);

/** Takes no scope, because the agent's row determines it. */
export const findAgents = (db: SqlTx, agentIds: readonly string[]): Promise<AgentRow[]> => db.query(FIND_AGENTS, [agentIds]);

const FIND_AGENTS_OF = statement<AgentRow>("agents.findByDevice", `${AGENT} where d.device_id = any($1) and d.deleted_at is null`);

export const findAgentsOf = (db: SqlTx, deviceIds: readonly string[]): Promise<AgentRow[]> => db.query(FIND_AGENTS_OF, [deviceIds]);

const LOCK_AGENT = statement<AgentRow>("agents.lock", `${AGENT} where d.agent_id = $1 and d.deleted_at is null for update of d`);

export const lockAgent = async (tx: SqlTx, agentId: string): Promise<AgentRow | undefined> => (await tx.query(LOCK_AGENT, [agentId]))[0];

const PROMOTE_SECRET = statement(
  "agents.promoteSecret",
  "update devices set secret = pending_secret, pending_secret = null, secret_rotated_at = now() where agent_id = $1 and pending_secret is not null",
);

/** The pending secret becomes the current one. */
export const promoteSecret = (tx: SqlTx, agentId: string): Promise<unknown> => tx.query(PROMOTE_SECRET, [agentId]);

const select = { agentId: true, secret: true, pendingSecret: true, secretRotatedAt: true } as const;
export type SecretRow = Prisma.Result<Prisma.DeviceDelegate, { select: typeof select }, "findFirstOrThrow">;

export const findSecrets = (db: Clients, scope: SystemScope, deviceId: string): Promise<SecretRow | null> =>
  db.for(scope).device.findFirst({ where: { deviceId, deletedAt: null }, select });

interface NewSecret {
  readonly deviceId: string;
  readonly sealed: Uint8Array<ArrayBuffer>;
}

/** Begins a rotation unless one is pending; true when this call began it. */
export const beginRotation = async (db: Clients, scope: SystemScope, { deviceId, sealed }: NewSecret): Promise<boolean> =>
  (await db.for(scope).device.updateMany({ where: { deviceId, deletedAt: null, pendingSecret: null }, data: { pendingSecret: sealed } })).count === 1;

/** Makes the new secret the only one. False: no such device. */
export const replaceSecret = async (db: Clients, scope: SystemScope, { deviceId, sealed }: NewSecret, now: Date): Promise<boolean> => {
  const data = { secret: sealed, pendingSecret: null, secretRotatedAt: now };
  return (await db.for(scope).device.updateMany({ where: { deviceId, deletedAt: null }, data })).count === 1;
};

const SET_SIGNATURE_VERSION = statement<{ readonly tenant_id: TenantId; readonly device_id: DeviceId; readonly agent_id: AgentId; readonly changed: boolean }>(
  "agents.setSignatureVersion",
  `with old as (select device_id, min_sig_version from devices where device_id = $1 and tenant_id = $2 and deleted_at is null for update)
   update devices d set min_sig_version = $3 from old where d.device_id = old.device_id
   returning d.tenant_id, d.device_id, d.agent_id, d.min_sig_version <> old.min_sig_version as changed`,
);

/** Undefined: no such device. */
export const setSignatureVersion = async (
  tx: SqlTx,
  { tenantId, deviceId }: DeviceRef,
  version: 1 | 2,
): Promise<{ readonly tenant_id: TenantId; readonly device_id: DeviceId; readonly agent_id: AgentId; readonly changed: boolean } | undefined> => {
  const [row] = await tx.query(SET_SIGNATURE_VERSION, [deviceId, tenantId, version]);
  return row;
};

// What agents call about backups: reports of those that they make on their own, and the access to a repository.
import { contract, type DeviceId, type RepositoryRight } from "../../../../protocol/index.ts";
import type { Tx } from "../../../core/database.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import { type AgentPrincipal, actorOf, type SystemScope, type TenantScope } from "../../../core/scope.ts";
import type { Backing } from "../../apps/index.ts";
import type { FindOrder, Repositories } from "../../backup-destinations/index.ts";
import type { FeatureKit } from "../../kit.ts";
import { UNVERIFIED } from "../orders.ts";
import { isOpenBackup } from "../states.ts";
import type { BackupSteps } from "../steps.ts";
import { type BackupRow, toBackup } from "../store/backup-row.ts";
import { findBackup, insertBackup, lockAppData, lockBackup, saveBackup } from "../store/backups.ts";
import { findRestore } from "../store/restores.ts";
import { unknownBackup } from "./reads.ts";

type H = Handlers<typeof contract.backups>;
export interface AgentCallsDeps extends Pick<FeatureKit, "db"> {
  readonly steps: BackupSteps;
  readonly apps: () => Backing;
  readonly repositories: () => Repositories;
  readonly findOrder: FindOrder;
}

const agentOf = ({ principal }: TenantScope): AgentPrincipal => {
  if (principal.kind !== "agent") throw new AppError("FORBIDDEN", { details: { reason: "credential_kind" } });
  return principal;
};
const withPrefix = (checksum: string): string => (checksum.startsWith("sha256:") ? checksum : `sha256:${checksum}`);
const unknownCommand = (commandId: string): AppError => new AppError("COMMAND_NOT_FOUND", { details: { commandId } });

interface Said {
  readonly status?: "in_progress" | "completed" | "partially_failed" | "failed" | undefined;
  readonly size?: number | undefined;
  readonly checksum?: string | undefined;
}

const RIGHTS: ReadonlyMap<string, RepositoryRight> = new Map([
  [contract.backups.commands.create.type, "append"],
  [contract.backups.commands.restore.type, "read"],
  [contract.backups.commands.verify.type, "read"],
  [contract.backups.commands.download.type, "read"],
]);

export const createAgentCalls = ({ db, steps, apps, repositories, findOrder }: AgentCallsDeps): Pick<H, "report" | "reportChange" | "access"> => {
  const patchOf = ({ size, checksum }: Said) => ({
    ...(size === undefined ? {} : { size: BigInt(size) }),
    ...(checksum === undefined ? {} : { checksum: withPrefix(checksum) }),
  });
  /** What the gateway ordered ends by the command's ack alone. */
  const requireOwn = (row: BackupRow): void => {
    if (row.trigger === "agent") return;
    if (isOpenBackup(row.status)) throw new AppError("BACKUP_IN_PROGRESS", { details: { appId: row.appId } });
    throw new AppError("INVALID_STATE_TRANSITION", { details: { from: row.status, to: "completed", allowed: [] } });
  };
  const apply = async (tx: Tx, scope: SystemScope, row: BackupRow, said: Said): Promise<BackupRow> => {
    requireOwn(row);
    const { status = row.status } = said;
    const isOther = said.checksum !== undefined && row.checksum !== null && withPrefix(said.checksum) !== row.checksum;
    if (!isOpenBackup(row.status) && isOther) throw new AppError("CHECKSUM_MISMATCH", { details: { backupId: row.backupId } });
    const patch = patchOf(said);
    if (status === row.status) return saveBackup(tx, scope, row.backupId, patch);
    const failure = status === "failed" ? { stage: null, reason: "AGENT_FAILED", message: "The agent reports that its backup failed.", lines: [] } : null;
    const begun = row.status === "pending" && status !== "in_progress" ? await steps.backup(tx, scope, row, { to: "in_progress" }) : row;
    return steps.backup(tx, scope, begun, { to: status, patch: { ...patch, failure } });
  };

  return {
    report: ({ scope, commit, reply }, { deviceId, backupId, appId, ...said }) =>
      commit(async (tx) => {
        const own = agentOf(scope);
        if (deviceId !== own.deviceId) throw new AppError("FORBIDDEN", { details: { reason: "not_own_device" } });
        await lockAppData(tx, scope, backupId);
        const found = await lockBackup(tx, { tenantId: scope.tenantId }, backupId);
        if (found !== null) {
          if (found.deviceId !== own.deviceId || found.appId !== appId) throw unknownBackup(backupId);
          reply.status = 200;
          return toBackup(await apply(tx, scope, found, said));
        }
        const app = await apps().find(tx, { tenantId: scope.tenantId }, appId);
        if (app === null || app.deviceId !== own.deviceId) throw new AppError("APP_NOT_FOUND", { details: { appId } });
        const made = await insertBackup(tx, scope, {
          backupId,
          deviceId: app.deviceId,
          appId: app.appId,
          name: app.name,
          type: "full",
          trigger: "agent",
          status: "pending",
          createdBy: actorOf(scope.principal),
          verification: UNVERIFIED,
        });
        await steps.tell(tx, scope, made, "created");
        return toBackup(await apply(tx, scope, made, said));
      }),
    reportChange: ({ scope, commit }, { backupId, ...said }) =>
      commit(async (tx) => {
        const row = await lockBackup(tx, { tenantId: scope.tenantId }, backupId);
        if (row === null || row.deviceId !== agentOf(scope).deviceId) throw unknownBackup(backupId);
        return toBackup(await apply(tx, scope, row, said));
      }),
    access: async ({ scope }, { backupId, commandId }) => {
      const { deviceId } = agentOf(scope);
      const order = await findOrder(scope, deviceId, commandId);
      const right = order === null ? undefined : RIGHTS.get(order.type);
      if (order === null || right === undefined || order.payload["backupId"] !== backupId) throw unknownCommand(commandId);
      const backup = await findBackup(db, { tenantId: scope.tenantId }, backupId);
      // A restore and a verification may read another device's repository, because somebody who sees both ordered it.
      const restoreId = order.payload["restoreId"];
      const restore = typeof restoreId === "string" ? await findRestore(db, { tenantId: scope.tenantId }, restoreId) : null;
      const reads = restore === null ? order.type === contract.backups.commands.verify.type : restore.deviceId === deviceId && restore.backupId === backupId;
      const isOwn = backup?.deviceId === deviceId || reads;
      if (backup === null || backup.destinationId === null || !isOwn) throw unknownBackup(backupId);
      const place = await repositories().find(db, scope, { destinationId: backup.destinationId, deviceId: backup.deviceId });
      if (place === null) throw unknownBackup(backupId);
      return repositories().access(scope, place, { right, commandId, deviceId: deviceId as DeviceId, deadlineAt: order.deadlineAt });
    },
  };
};

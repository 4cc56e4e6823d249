// Progress of installations, found by pairing until there is a device, and by device afterwards.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { type DeviceId, EnrollmentProgress, type EnrollmentStep, type StepStatus, type TenantId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import type { Progress } from "../rules.ts";

type EnrollmentRow = Prisma.Result<Prisma.EnrollmentDelegate, object, "findFirstOrThrow">;

export interface Enrollment {
  readonly pairingId: string;
  readonly tenantId: TenantId | null;
  readonly deviceId: DeviceId | null;
  readonly progress: Progress;
  readonly shown: EnrollmentProgress;
}

const toEnrollment = (row: EnrollmentRow): Enrollment => ({
  pairingId: row.pairingId,
  tenantId: row.tenantId as TenantId | null,
  deviceId: row.deviceId as DeviceId | null,
  // as: only `saveProgress` writes these columns
  progress: { currentStep: row.currentStep as EnrollmentStep, steps: row.steps as Record<string, StepStatus>, error: row.error },
  shown: recordOf(EnrollmentProgress, row),
});

export const findByPairing = async (db: Clients, pairingId: string): Promise<Enrollment | null> => {
  const row = await db.system.enrollment.findFirst({ where: { pairingId } });
  return row === null ? null : toEnrollment(row);
};

const LOCK_ENROLLMENT = statement<{ readonly pairing_id: string }>("enrollments.lock", "select pairing_id from enrollments where pairing_id = $1 for update");

/** Locks the enrollment until the transaction ends, so two reports of one installation run one after the other. */
export const lockByPairing = async (tx: SqlTx & Clients, pairingId: string): Promise<Enrollment | null> => {
  await tx.query(LOCK_ENROLLMENT, [pairingId]);
  return findByPairing(tx, pairingId);
};

export const findByDevice = async (db: Clients, scope: SystemScope, deviceId: string): Promise<Enrollment | null> => {
  const row = await db.for(scope).enrollment.findFirst({ where: { deviceId } });
  return row === null ? null : toEnrollment(row);
};

export const saveProgress = async (db: Clients, pairingId: string, { currentStep, steps, error }: Progress, now: Date): Promise<Enrollment> =>
  toEnrollment(
    await db.system.enrollment.update({
      where: { pairingId },
      data: { currentStep, steps, error, completedAt: currentStep === "completed" ? now : null, failedAt: currentStep === "failed" ? now : null },
    }),
  );

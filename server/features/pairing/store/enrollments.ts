// How far installations have come: found by pairing while there is no device yet, by device afterwards.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { DeviceId, EnrollmentProgress, EnrollmentStep, StepStatus, TenantId } from "../../../../protocol/index.ts";
import { systemClock } from "../../../core/clock.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { Progress } from "../rules.ts";

type EnrollmentRow = Prisma.Result<Prisma.EnrollmentDelegate, object, "findFirstOrThrow">;

export interface Enrollment {
  readonly pairingId: string;
  readonly tenantId: TenantId | null;
  readonly deviceId: DeviceId | null;
  readonly progress: Progress;
  readonly shown: EnrollmentProgress;
}

const toEnrollment = ({ pairingId, tenantId, deviceId, currentStep: step, steps: stored, error, completedAt, failedAt }: EnrollmentRow): Enrollment => {
  const currentStep = step as EnrollmentStep;
  const steps = stored as Record<string, StepStatus>; // as: only `saveProgress` writes it
  return {
    pairingId,
    tenantId: tenantId as TenantId | null,
    deviceId: deviceId as DeviceId | null,
    progress: { currentStep, steps, error },
    shown: {
      currentStep,
      steps,
      ...(error === null ? {} : { error }),
      ...(completedAt === null ? {} : { completedAt: completedAt.toISOString() }),
      ...(failedAt === null ? {} : { failedAt: failedAt.toISOString() }),
    },
  };
};

export const findByPairing = async (db: Clients, pairingId: string): Promise<Enrollment | null> => {
  const row = await db.system.enrollment.findFirst({ where: { pairingId } });
  return row === null ? null : toEnrollment(row);
};

/** Locked until the transaction ends: two reports of one installation are judged one after the other. */
export const lockByPairing = async (tx: SqlTx & Clients, pairingId: string): Promise<Enrollment | null> => {
  await tx.query("select 1 from enrollments where pairing_id = $1 for update", [pairingId]);
  return findByPairing(tx, pairingId);
};

export const findByDevice = async (db: Clients, scope: SystemScope, deviceId: string): Promise<Enrollment | null> => {
  const row = await db.for(scope).enrollment.findFirst({ where: { deviceId } });
  return row === null ? null : toEnrollment(row);
};

export const saveProgress = async (db: Clients, pairingId: string, { currentStep, steps, error }: Progress): Promise<Enrollment> => {
  const now = systemClock.now();
  return toEnrollment(
    await db.system.enrollment.update({
      where: { pairingId },
      data: { currentStep, steps, error, completedAt: currentStep === "completed" ? now : null, failedAt: currentStep === "failed" ? now : null },
    }),
  );
};

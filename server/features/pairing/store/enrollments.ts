// How far installations have come: found by pairing while there is no device yet, by device afterwards.
import type { DeviceId, EnrollmentProgress, EnrollmentStep, StepStatus, TenantId } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { Progress } from "../rules.ts";

interface EnrollmentRow {
  readonly pairing_id: string;
  readonly tenant_id: TenantId | null;
  readonly device_id: DeviceId | null;
  readonly current_step: EnrollmentStep;
  readonly steps: Readonly<Record<string, StepStatus>>;
  readonly error: string | null;
  readonly completed_at: Date | null;
  readonly failed_at: Date | null;
}

export interface Enrollment {
  readonly pairingId: string;
  readonly tenantId: TenantId | null;
  readonly deviceId: DeviceId | null;
  readonly progress: Progress;
  readonly shown: EnrollmentProgress;
}

const toEnrollment = ({ pairing_id, tenant_id, device_id, current_step, steps, error, completed_at, failed_at }: EnrollmentRow): Enrollment => ({
  pairingId: pairing_id,
  tenantId: tenant_id,
  deviceId: device_id,
  progress: { currentStep: current_step, steps, error },
  shown: {
    currentStep: current_step,
    steps: { ...steps },
    ...(error === null ? {} : { error }),
    ...(completed_at === null ? {} : { completedAt: completed_at.toISOString() }),
    ...(failed_at === null ? {} : { failedAt: failed_at.toISOString() }),
  },
});

const COLUMNS = "pairing_id, tenant_id, device_id, current_step, steps, error, completed_at, failed_at";

export const findByPairing = async (sql: SqlTx, pairingId: string): Promise<Enrollment | null> => {
  const [row] = await sql.query<EnrollmentRow>(`select ${COLUMNS} from enrollments where pairing_id = $1`, [pairingId]);
  return row === undefined ? null : toEnrollment(row);
};

/** Locked until the transaction ends: two reports of one installation are judged one after the other. */
export const lockByPairing = async (tx: SqlTx, pairingId: string): Promise<Enrollment | null> => {
  const [row] = await tx.query<EnrollmentRow>(`select ${COLUMNS} from enrollments where pairing_id = $1 for update`, [pairingId]);
  return row === undefined ? null : toEnrollment(row);
};

export const findByDevice = async (sql: SqlTx, { tenantId }: SystemScope, deviceId: string): Promise<Enrollment | null> => {
  const [row] = await sql.query<EnrollmentRow>(`select ${COLUMNS} from enrollments where tenant_id = $1 and device_id = $2`, [tenantId, deviceId]);
  return row === undefined ? null : toEnrollment(row);
};

export const saveProgress = async (tx: SqlTx, pairingId: string, { currentStep, steps, error }: Progress): Promise<Enrollment> => {
  const [row] = await tx.query<EnrollmentRow>(
    `update enrollments set current_step = $2, steps = $3::jsonb, error = $4, updated_at = now(),
       completed_at = case when $2 = 'completed' then now() end, failed_at = case when $2 = 'failed' then now() end
     where pairing_id = $1 returning ${COLUMNS}`,
    [pairingId, currentStep, JSON.stringify(steps), error],
  );
  if (row === undefined) throw new Error("an enrollment vanished while it was locked");
  return toEnrollment(row);
};

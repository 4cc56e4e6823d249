// Progress of an installation: the installer reports it under its pairing code, the paired agent under its device, and people read it.
import { contract, type EnrollmentProgress } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import type { Tx } from "../../core/database.ts";
import type { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import type { OpenScope } from "../../core/scope.ts";
import type { CodeGuesses } from "./code-guesses.ts";
import { advance, type Report } from "./rules.ts";
import { type Enrollment, findByDevice, findByPairing, lockByPairing, saveProgress } from "./store/enrollments.ts";
import type { PairingDeps } from "./types.ts";

type ProgressHandlers = Pick<Handlers<typeof contract.pairing>, "updateProgress" | "progress" | "updateDeviceProgress" | "deviceProgress">;

export const createProgressHandlers = ({ db, clock, emit, devices }: PairingDeps, codes: CodeGuesses): ProgressHandlers => {
  const report = (pairingId: string, given: Report, call: ReportCall): Promise<EnrollmentProgress> =>
    db.tx(async (tx) => {
      const enrollment = await lockByPairing(tx, pairingId);
      if (enrollment === null) throw call.missing();
      const verdict = advance(enrollment.progress, given);
      if (verdict.kind === "same") return enrollment.shown;
      if (verdict.kind === "refused") throw call.refused({ from: verdict.from, to: verdict.to, allowed: verdict.allowed });
      const saved = await saveProgress(tx, pairingId, verdict.next, clock.now());
      await emitProgress(tx, call.scope, saved);
      return saved.shown;
    });

  // Before the activation there is no tenant to emit the event for.
  const emitProgress = async (tx: Tx, call: OpenScope, { tenantId, deviceId, shown }: Enrollment): Promise<void> => {
    if (tenantId === null || deviceId === null) return;
    const scope = { tenantId, requestId: call.requestId, ip: call.ip, traceparent: call.traceparent };
    const data = { deviceId, currentStep: shown.currentStep, ...(shown.error === undefined ? {} : { error: shown.error }) };
    await emit(tx, [happened(scope, eventOf(shown), deviceId, data)]);
  };

  return {
    updateProgress: async ({ scope, fail }, { pairingCode, ...given }) => {
      const pairing = (await codes.find(scope, pairingCode))?.pairing;
      if (pairing === undefined || pairing.status === "expired" || pairing.status === "rejected") throw fail("PAIRING_CODE_NOT_FOUND");
      return report(pairing.pairingId, given, {
        scope,
        missing: () => fail("PAIRING_CODE_NOT_FOUND"),
        refused: (facts) => fail("INVALID_STATE_TRANSITION", { ...facts }),
      });
    },

    progress: async ({ scope, fail }, { pairingCode }) => {
      const pairing = (await codes.find(scope, pairingCode))?.pairing;
      if (pairing !== undefined && pairing.tenantId !== scope.tenantId) await codes.count(scope);
      const enrollment = pairing?.tenantId === scope.tenantId ? await findByPairing(db, pairing.pairingId) : null;
      const hidden = enrollment !== null && isLimited(scope) && !(enrollment.deviceId !== null && (await devices.exists(scope, enrollment.deviceId)));
      if (enrollment === null || hidden) throw fail("PAIRING_CODE_NOT_FOUND");
      return enrollment.shown;
    },

    updateDeviceProgress: async ({ scope, fail }, { deviceId, ...given }) => {
      const enrollment = await findByDevice(db, scope, deviceId);
      if (enrollment === null) throw fail("ENROLLMENT_NOT_FOUND");
      return report(enrollment.pairingId, given, {
        scope,
        missing: () => fail("ENROLLMENT_NOT_FOUND"),
        refused: (facts) => fail("INVALID_STATE_TRANSITION", { ...facts }),
      });
    },

    deviceProgress: async ({ scope, fail }, { deviceId }) => {
      if (!(await devices.exists(scope, deviceId))) throw fail("DEVICE_NOT_FOUND", { deviceId });
      const enrollment = await findByDevice(db, scope, deviceId);
      if (enrollment === null) throw fail("ENROLLMENT_NOT_FOUND");
      return enrollment.shown;
    },
  };
};

interface ReportCall {
  readonly scope: OpenScope;
  readonly missing: () => AppError;
  readonly refused: (facts: { readonly from: string; readonly to: string; readonly allowed: readonly string[] }) => AppError;
}

const eventOf = ({ currentStep }: EnrollmentProgress) => {
  const { progressed, completed, failed } = contract.pairing.events;
  if (currentStep === "completed") return completed;
  return currentStep === "failed" ? failed : progressed;
};

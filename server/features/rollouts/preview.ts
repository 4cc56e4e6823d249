// What a rollout would do now, by the same rules that it would go by.
import type { RolloutPreview, UpdateSettings } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { RolloutFleet } from "./fleet.ts";
import { subjectText } from "./record.ts";
import { sizesOf } from "./rules/phases.ts";
import { nextOpenings } from "./rules/windows.ts";
import type { Aim } from "./settings.ts";
import { findConflicts, previewFleet } from "./store/freeze.ts";

const WINDOWS_SHOWN = 10;
/** More devices than so many in a single phase have nothing but the ramp and the threshold to protect them. */
const MANY = 20;
/** No rollout has it: the preview is of a rollout that does not exist. */
const NOBODY = "";

export interface Previewed {
  readonly settings: UpdateSettings;
  readonly aim: Aim;
  readonly fleet: RolloutFleet | null;
  readonly now: Date;
}

export const previewRollout = async (db: Tx, scope: TenantScope, { settings, aim, fleet, now }: Previewed): Promise<RolloutPreview> => {
  const { subject, phases, configuration, maintenanceWindows } = settings;
  const asked = {
    rolloutId: NOBODY,
    subject: subjectText(subject),
    template: subject.kind === "app" ? subject.template : null,
    version: aim.target.version,
    configuration,
    tags: phases.flatMap(({ tag }) => (tag === null ? [] : [tag])),
  };
  const groups = fleet === null ? null : await previewFleet(db, scope, asked, { ...fleet, onlyNew: false });
  const sum = (rows: readonly { readonly count: number }[]): number => rows.reduce((total, { count }) => total + count, 0);
  const taking = groups?.filter(({ code }) => code === null) ?? null;
  const updates = taking === null ? null : sum(taking);
  const total = groups === null ? null : sum(groups);
  const sizes = updates === null ? null : sizesOf(phases, updates);
  const codes = [...new Set(groups?.flatMap(({ code }) => code ?? []))].sort();
  const conflicts = fleet === null ? [] : await findConflicts(db, scope, asked, fleet);
  return {
    subject,
    target: aim.target,
    total,
    updates,
    skipped: codes.map((code) => ({ code, count: sum(groups?.filter((group) => group.code === code) ?? []) })),
    offline: taking === null ? null : sum(taking.filter(({ offline }) => offline)),
    phases: phases.map((phase, at) => ({ ...phase, phase: at + 1, size: sizes?.[at] ?? null })),
    windows: nextOpenings(maintenanceWindows, now, WINDOWS_SHOWN),
    conflicts: conflicts.map(({ rollout_id, devices }) => ({ rolloutId: rollout_id as `rlt_${string}`, devices })), // as: a row's id
    warnings: [
      ...(phases.length === 1 && (updates ?? MANY + 1) > MANY ? ["SINGLE_PHASE" as const] : []),
      ...(total === 0 ? ["NO_DEVICES" as const] : []),
      ...(total !== null && total > 0 && updates === 0 ? ["NOTHING_TO_DO" as const] : []),
    ],
  };
};

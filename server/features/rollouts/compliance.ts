// How far a fleet is as its update policy wants it, by the same rules that a rollout would go by.
import type { FleetSummary } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { isAppError } from "../../core/errors.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { RolloutFleet } from "./fleet.ts";
import { subjectText } from "./record.ts";
import type { Aim, FindAim } from "./settings.ts";
import { previewFleet } from "./store/freeze.ts";
import { findUpdatePolicy } from "./store/policies.ts";

/** Devices that the update cannot reach count for neither side. */
const NOT_CONCERNED: ReadonlySet<string | null> = new Set(["NOT_APPLICABLE", "SEVERAL_APPS"]);

export const createComplianceOf =
  (findAim: FindAim) =>
  async (db: Tx, scope: TenantScope, fleet: RolloutFleet): Promise<FleetSummary["compliance"]> => {
    const policy = fleet.updatePolicyId === null ? null : await findUpdatePolicy(db, scope, fleet.updatePolicyId);
    if (policy === null) return null;
    const aim = await findAim(scope, policy).catch((error: unknown): Aim | null => {
      if (isAppError(error)) return null;
      throw error;
    });
    if (aim === null) return null;
    const { subject, configuration, updatePolicyId } = policy;
    const template = subject.kind === "app" ? subject.template : null;
    const asked = { rolloutId: "", subject: subjectText(subject), template, version: aim.target.version, configuration, tags: [] };
    const groups = (await previewFleet(db, scope, asked, { ...fleet, onlyNew: false })).filter(({ code }) => !NOT_CONCERNED.has(code));
    const sum = (rows: typeof groups): number => rows.reduce((total, { count }) => total + count, 0);
    const [devices, have] = [sum(groups), sum(groups.filter(({ code }) => code === "ALREADY_THERE"))];
    return { updatePolicyId, target: aim.target.version, devices, have, percent: devices === 0 ? null : Math.floor((have * 1_000) / devices) / 10 };
  };

// Update policies: how a tenant wants its fleets to be updated.
import { contract, type UpdatePolicy, UpdateSettings } from "../../../../protocol/index.ts";
import { isLimited } from "../../../core/access.ts";
import { AppError } from "../../../core/errors.ts";
import { happened } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import { newId } from "../../../core/ids.ts";
import { withActor, withActors } from "../../../core/people/actors.ts";
import { given } from "../../../core/rows/records.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import type { FindFleet } from "../fleet.ts";
import { previewRollout } from "../preview.ts";
import { checkRolloutSettings, type FindAim } from "../settings.ts";
import { deleteUpdatePolicy, findUpdatePolicy, insertUpdatePolicy, pageOfUpdatePolicies, saveUpdatePolicy } from "../store/policies.ts";

export interface UpdatePoliciesDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan"> {
  readonly findAim: FindAim;
  readonly findFleet: FindFleet;
  /** Throws FLEET_NOT_FOUND for a fleet that the caller does not see. */
  readonly requireFleet: (scope: SystemScope, fleetId: string) => Promise<void>;
}

type Names = "listPolicies" | "getPolicy" | "createPolicy" | "updatePolicy" | "removePolicy" | "previewPolicy";
const { policyCreated, policyUpdated, policyDeleted } = contract.rollouts.events;
export const unknownPolicy = (updatePolicyId: string): AppError => new AppError("UPDATE_POLICY_NOT_FOUND", { details: { updatePolicyId } });

/** The part of a policy that a rollout copies. */
export const settingsOf = (policy: UpdatePolicy): UpdateSettings => UpdateSettings.parse(policy);

export const createPolicies = ({
  db,
  clock,
  emit,
  plan,
  findAim,
  findFleet,
  requireFleet,
}: UpdatePoliciesDeps): Pick<Handlers<typeof contract.rollouts>, Names> => {
  const checked = async (scope: TenantScope, settings: UpdateSettings): Promise<void> => {
    checkRolloutSettings(settings, clock.now());
    // A channel may get its first release later; a template that does not exist never will.
    if (settings.subject.kind === "app" || settings.targetVersion !== null) await findAim(scope, settings);
  };
  return {
    listPolicies: async ({ scope }, query) => {
      const { items, ...page } = await pageOfUpdatePolicies(db, scope, query);
      return { items: await withActors(db, scope, items), ...page };
    },
    getPolicy: async ({ scope }, { updatePolicyId }) => {
      const policy = await findUpdatePolicy(db, scope, updatePolicyId);
      if (policy === null) throw unknownPolicy(updatePolicyId);
      return withActor(db, scope, policy);
    },
    createPolicy: async ({ scope, commit }, { name, description, enabled, ...settings }) => {
      await checked(scope, settings);
      return commit(async (tx) => {
        await plan.require(tx, scope, "updatePolicies", 1);
        const updatePolicyId = newId("upl");
        const policy = await insertUpdatePolicy(tx, scope, { updatePolicyId, name, description, enabled, settings, createdBy: actorOf(scope.principal) });
        await emit(tx, [happened(scope, policyCreated, updatePolicyId, { updatePolicyId, name })]);
        return policy;
      });
    },
    updatePolicy: async ({ scope, commit, fail }, { updatePolicyId, version, ...change }) => {
      const known = await findUpdatePolicy(db, scope, updatePolicyId);
      if (known === null) throw unknownPolicy(updatePolicyId);
      const { name, description, enabled, ...rest } = { ...known, ...given(change) };
      const settings = UpdateSettings.parse(rest);
      if (settings.subject.kind === "agent" && settings.configuration !== null)
        throw new AppError("VALIDATION_FAILED", { details: { issues: [{ path: "configuration", code: "custom", message: "an agent has none" }] } });
      await checked(scope, settings);
      return commit(async (tx) => {
        const wanted = { updatePolicyId, version: version ?? known.version };
        const policy = await saveUpdatePolicy(tx, scope, wanted, { name, description, enabled, settings });
        if (policy === null) throw fail("VERSION_CONFLICT", { currentVersion: (await findUpdatePolicy(tx, scope, updatePolicyId))?.version ?? known.version });
        await emit(tx, [happened(scope, policyUpdated, updatePolicyId, { updatePolicyId: policy.updatePolicyId, name })]);
        return policy;
      });
    },
    removePolicy: ({ scope, commit, fail }, { updatePolicyId }) =>
      commit(async (tx) => {
        const policy = await findUpdatePolicy(tx, scope, updatePolicyId);
        if (policy === null) throw unknownPolicy(updatePolicyId);
        const end = await deleteUpdatePolicy(tx, scope, updatePolicyId);
        if (end === "used") throw fail("UPDATE_POLICY_IN_USE", { updatePolicyId });
        if (end === "gone") throw unknownPolicy(updatePolicyId);
        await emit(tx, [happened(scope, policyDeleted, updatePolicyId, { updatePolicyId: policy.updatePolicyId, name: policy.name })]);
        return null;
      }),
    previewPolicy: async ({ scope }, { policy: settings, fleetId }) => {
      checkRolloutSettings(settings, clock.now());
      const aim = await findAim(scope, settings);
      if (fleetId !== undefined) await requireFleet(scope, fleetId);
      const fleet = fleetId === undefined ? null : await findFleet(db, scope, fleetId);
      const shown = await previewRollout(db, scope, { settings, aim, fleet, now: clock.now() });
      // A limited caller sees the fleets that have one of the caller's devices.
      if (fleetId !== undefined && isLimited(scope) && shown.total === 0) throw new AppError("FLEET_NOT_FOUND", { details: { fleetId } });
      return shown;
    },
  };
};

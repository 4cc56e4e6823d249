// Makes rollouts: from a policy or settings of their own, or as the child of another one.
import { type contract, type FleetId, UpdateSettings } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import { newId } from "../../../core/ids.ts";
import { actorOf, type TenantScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import type { FindFleet, RolloutFleet } from "../fleet.ts";
import { previewRollout } from "../preview.ts";
import { subjectText, toRollout } from "../record.ts";
import { checkRolloutSettings, type FindAim } from "../settings.ts";
import type { Starting } from "../starting.ts";
import { findUpdatePolicy } from "../store/policies.ts";
import { settingsOf, unknownPolicy } from "./policies.ts";

export interface RolloutCreateDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "many"> {
  readonly findAim: FindAim;
  readonly findFleet: FindFleet;
  readonly starting: Starting;
}

const MAX_AHEAD_MS = 90 * 86_400_000;
type H = Handlers<typeof contract.rollouts>;
type Input = Parameters<H["preview"]>[1];

interface Wanted {
  readonly settings: UpdateSettings;
  readonly fleet: RolloutFleet;
}

export const createCreate = ({ db, clock, many, findAim, findFleet, starting }: RolloutCreateDeps): Pick<H, "create" | "preview"> => {
  const wanted = async (scope: TenantScope, { updatePolicyId, settings, targetVersion, fleetId, startAt }: Input): Promise<Wanted> => {
    const policy = updatePolicyId === undefined ? null : await findUpdatePolicy(db, scope, updatePolicyId);
    if (updatePolicyId !== undefined && policy === null) throw unknownPolicy(updatePolicyId);
    if (policy?.enabled === false) throw refused("updatePolicyId", "the policy is disabled");
    const chosen = policy === null ? settings : settingsOf(policy);
    const complete = UpdateSettings.parse({ ...chosen, ...(targetVersion === undefined ? {} : { targetVersion }) });
    checkRolloutSettings(complete, clock.now());
    if (startAt !== undefined && Date.parse(startAt) - clock.now().getTime() > MAX_AHEAD_MS) throw refused("startAt", "is more than 90 days ahead");
    const fleet = await findFleet(db, scope, fleetId);
    if (fleet === null) throw new AppError("FLEET_NOT_FOUND", { details: { fleetId } });
    return { settings: complete, fleet };
  };
  return {
    preview: async ({ scope }, input) => {
      const { settings, fleet } = await wanted(scope, input);
      return previewRollout(db, scope, { settings, aim: await findAim(scope, settings), fleet, now: clock.now() });
    },
    create: async ({ scope, commit }, input) => {
      const { settings, fleet } = await wanted(scope, input);
      const { target, content } = await findAim(scope, settings);
      const what = settings.subject.kind === "agent" ? "agent" : settings.subject.template;
      return commit(async (tx, afterwards) => {
        const made = await starting.insert(tx, scope, {
          rolloutId: newId("rlt"),
          name: input.name ?? `${what} ${target.version}`,
          fleetId: fleet.fleetId as FleetId, // as: a row's id
          updatePolicyId: input.updatePolicyId ?? null,
          subject: subjectText(settings.subject),
          settings,
          target,
          content,
          conflicts: input.conflicts,
          status: "draft",
          startAt: input.startAt === undefined ? null : new Date(input.startAt),
          createdBy: actorOf(scope.principal),
        });
        const row = input.start ? await starting.start(tx, scope, made, fleet) : made;
        if (input.start) afterwards(many.hint);
        return toRollout(row, scope, undefined);
      });
    },
  };
};

const refused = (path: string, message: string): AppError => new AppError("VALIDATION_FAILED", { details: { issues: [{ path, code: "custom", message }] } });

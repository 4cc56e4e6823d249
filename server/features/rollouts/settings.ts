// Checks how an update is to be rolled out, and finds the version that it leads to.
import type { AppSpec, Rollout, UpdateSettings } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { AppRollouts } from "../apps/index.ts";
import { checkWindows } from "./rules/windows.ts";

export interface UpdateSettingsDeps {
  readonly apps: () => Pick<AppRollouts, "target">;
  /** The newest release of a channel. "elsewhere": this gateway offers no releases, so any version may exist. */
  readonly newestRelease: (channel: string) => Promise<string | null | "elsewhere">;
}

export interface Aim {
  readonly target: Rollout["target"];
  readonly content: AppSpec | null;
}

const unknownVersion = (targetVersion: string | null, known: string | null): AppError =>
  new AppError("UPDATE_VERSION_UNKNOWN", { details: { targetVersion: targetVersion ?? "of this channel", known } });

/** Throws for what can never be carried out. */
export const checkRolloutSettings = ({ subject, onFailure, maintenanceWindows }: UpdateSettings, now: Date): void => {
  if (subject.kind === "agent" && onFailure === "rollback")
    throw new AppError("ROLLBACK_NOT_POSSIBLE", { details: { problem: "agents refuse releases that are older than theirs" } });
  checkWindows(maintenanceWindows, now);
};

/** Throws UPDATE_VERSION_UNKNOWN, APP_TEMPLATE_NOT_FOUND or PLAN_UPGRADE_REQUIRED. */
export const createFindAim =
  ({ apps, newestRelease }: UpdateSettingsDeps) =>
  async (scope: TenantScope, { subject, targetVersion }: Pick<UpdateSettings, "subject" | "targetVersion">): Promise<Aim> => {
    if (subject.kind === "app") {
      const { version, spec, contentHash } = apps().target(scope, subject.template);
      // The catalogue has one version of each template.
      if (targetVersion !== null && targetVersion !== version) throw unknownVersion(targetVersion, version);
      return { target: { version, contentHash }, content: spec };
    }
    const newest = await newestRelease(subject.channel);
    // Agents take the newest release of their channel, and no other.
    const version = newest === "elsewhere" ? targetVersion : targetVersion === null || targetVersion === newest ? newest : null;
    if (version === null) throw unknownVersion(targetVersion, newest);
    return { target: { version, contentHash: null }, content: null };
  };
export type FindAim = ReturnType<typeof createFindAim>;

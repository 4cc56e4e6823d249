// What the changes of an app's data share with the processes of apps: the names of folders, and the failure of a hook.
import { HostFailure } from "../host.ts";
import type { HookStep } from "./settings.ts";

/** Beside the volumes: restored data, and former data during a swap. */
export const INCOMING = "incoming";
export const FORMER = "former";

/** What a step of the template says of itself, as a failure. */
export const hookFailure = (step: HookStep, why: string, lines: readonly string[] = []): HostFailure =>
  new HostFailure({ stage: "running", reason: "HOOK_FAILED", message: `${step.command[0]}: ${why}`, lines });

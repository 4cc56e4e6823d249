// The steps of an installation, and the record that reports them.
import { z } from "zod";

const Timestamp = z.iso.datetime();

/** In their order; `failed` may follow any step that is not final. */
export const ENROLLMENT_STEPS = ["pending", "preflight_check", "docker_install", "downloading", "installing", "enrolling", "completed", "failed"] as const;
export const EnrollmentStep = z.enum(ENROLLMENT_STEPS);
export type EnrollmentStep = z.infer<typeof EnrollmentStep>;
export const StepStatus = z.enum(["pending", "in_progress", "completed", "failed", "skipped"]);
export type StepStatus = z.infer<typeof StepStatus>;

export const EnrollmentProgress = z.object({
  currentStep: EnrollmentStep,
  steps: z.record(z.string(), StepStatus),
  completedAt: Timestamp.optional(),
  failedAt: Timestamp.optional(),
  error: z.string().optional(),
});
export type EnrollmentProgress = z.infer<typeof EnrollmentProgress>;
export const progressUpdate = { currentStep: EnrollmentStep, stepStatus: StepStatus.optional(), error: z.string().max(1000).nullish() };

/** What a person types on a machine that is to become a device. There is none for macOS: no package of the agent runs there. */
export const InstallCommands = z.object({
  linux: z.string().describe("Installs the agent. Apps run as containers where Docker answers, else as processes."),
  docker: z.string().describe("The same for a machine with Docker: apps run as containers."),
  ownAgent: z.string().describe("The variables that an agent of your own pairs with."),
});
export type InstallCommands = z.infer<typeof InstallCommands>;
export const InstallCommand = z.object({ command: z.string().describe("The same as `commands.linux`."), commands: InstallCommands });

// The steps that an installation may take: every pair of steps, and any sequence of reports.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ENROLLMENT_STEPS, type EnrollmentStep, StepStatus } from "../../../protocol/index.ts";
import { advance, type Progress, type Report, START_OF_PAIRING } from "../../../server/features/pairing/rules.ts";

const at = (currentStep: EnrollmentStep, status: StepStatus = "in_progress"): Progress => ({
  currentStep,
  steps: ["pending", "completed", "failed"].includes(currentStep) ? {} : { [currentStep]: status },
  error: null,
});

describe("steps", () => {
  const allowed: Record<EnrollmentStep, readonly EnrollmentStep[]> = {
    pending: ["pending", "preflight_check", "failed"],
    preflight_check: ["preflight_check", "docker_install", "failed"],
    docker_install: ["docker_install", "downloading", "failed"],
    downloading: ["downloading", "installing", "failed"],
    installing: ["installing", "enrolling", "failed"],
    enrolling: ["enrolling", "completed", "failed"],
    completed: ["completed"],
    failed: ["pending", "failed"],
  };
  test.each(ENROLLMENT_STEPS)("only the listed steps may follow %s", (from) => {
    const accepted = ENROLLMENT_STEPS.filter((to) => advance(at(from), { currentStep: to }).kind !== "refused");
    expect(accepted.toSorted()).toEqual(allowed[from].toSorted());
  });
});

describe("step status", () => {
  test.each([
    ["pending", ["pending", "in_progress", "completed", "failed", "skipped"]],
    ["in_progress", ["in_progress", "completed", "failed", "skipped"]],
    ["failed", ["failed", "in_progress"]],
    ["completed", ["completed"]],
    ["skipped", ["skipped"]],
  ] as const)("within a step, %s leads only to %j", (from, to) => {
    const accepted = StepStatus.options.filter((stepStatus) => advance(at("installing", from), { currentStep: "installing", stepStatus }).kind !== "refused");
    expect(accepted.toSorted()).toEqual([...to].toSorted());
  });

  test("a failed step cannot be skipped but can be tried again", () => {
    const failed = at("downloading", "failed");
    expect(advance(failed, { currentStep: "installing" })).toMatchObject({ kind: "refused", allowed: ["downloading", "failed"] });
    expect(advance(failed, { currentStep: "downloading" })).toMatchObject({ kind: "moved", next: { steps: { downloading: "in_progress" } } });
  });
});

test("a completed installation has every step completed or skipped, whatever was reported before", () => {
  const report: fc.Arbitrary<Report> = fc.record({
    currentStep: fc.constantFrom(...ENROLLMENT_STEPS),
    stepStatus: fc.option(fc.constantFrom(...StepStatus.options), { nil: undefined }),
  });
  const forward = ENROLLMENT_STEPS.filter((step) => step !== "failed").map((currentStep): Report => ({ currentStep }));
  fc.assert(
    fc.property(fc.array(report, { maxLength: 30 }), (reports) => {
      let now: Progress = START_OF_PAIRING;
      for (const each of [...reports, { currentStep: "failed" as const }, ...forward]) {
        const verdict = advance(now, each);
        if (verdict.kind === "moved") now = verdict.next;
        if (now.currentStep === "completed")
          expect(ENROLLMENT_STEPS.slice(1, 6).map((step) => now.steps[step])).not.toContainEqual(
            expect.toSatisfy((status) => status !== "completed" && status !== "skipped"),
          );
      }
      expect(now.currentStep).toBe("completed");
    }),
  );
});

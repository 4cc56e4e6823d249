// Rules of pairing: the steps of an installation, permission to activate, and the addresses to which a browser may return.
import { ENROLLMENT_STEPS, type EnrollmentStep, type Permission, type StepStatus } from "../../../protocol/index.ts";

/** How long a machine waits before it asks again. */
export const POLL_SECONDS = 6;

export interface Progress {
  readonly currentStep: EnrollmentStep;
  /** Only the work steps; `pending`, `completed` and `failed` are states of the whole installation. */
  readonly steps: Readonly<Record<string, StepStatus>>;
  readonly error: string | null;
}

export interface Report {
  readonly currentStep: EnrollmentStep;
  readonly stepStatus?: StepStatus | undefined;
  readonly error?: string | null | undefined;
}

export type Advance =
  | { readonly kind: "moved"; readonly next: Progress }
  /** A repeated report: an agent that got no answer sends it again. */
  | { readonly kind: "same" }
  | { readonly kind: "refused"; readonly from: string; readonly to: string; readonly allowed: readonly string[] };

export const START_OF_PAIRING: Progress = { currentStep: "pending", steps: {}, error: null };

const LEADS_TO: Readonly<Record<StepStatus, readonly StepStatus[]>> = {
  pending: ["in_progress", "completed", "failed", "skipped"],
  in_progress: ["completed", "failed", "skipped"],
  failed: ["in_progress"],
  completed: [],
  skipped: [],
};

const ORDER: readonly EnrollmentStep[] = ENROLLMENT_STEPS.filter((step) => step !== "failed");
const isWork = (step: EnrollmentStep): boolean => step !== "pending" && step !== "completed" && step !== "failed";

/** The steps that a report may name next. Progress moves one step at a time; the installer reports an unneeded step as skipped. */
const allowedAfter = ({ currentStep, steps }: Progress): readonly EnrollmentStep[] => {
  if (currentStep === "completed") return [];
  if (currentStep === "failed") return ["pending"];
  const next = ORDER[ORDER.indexOf(currentStep) + 1];
  const mayMoveOn = next !== undefined && steps[currentStep] !== "failed";
  return [currentStep, ...(mayMoveOn ? [next] : []), "failed"];
};

export const advance = (now: Progress, report: Report): Advance => {
  const allowed = allowedAfter(now);
  const { currentStep: from, steps } = now;
  const to = report.currentStep;
  if (to === from && !isWork(to)) return { kind: "same" };
  if (!allowed.includes(to)) return { kind: "refused", from, to, allowed };
  if (to === "pending") return { kind: "moved", next: START_OF_PAIRING };
  const error = report.error ?? null;
  // Moving to the next step completes the one before, unless it was skipped.
  const left = isWork(from) && to !== from && to !== "failed" && steps[from] !== "skipped" ? { ...steps, [from]: "completed" as const } : steps;
  if (to === "failed") return { kind: "moved", next: { currentStep: to, steps: isWork(from) ? { ...steps, [from]: "failed" } : steps, error } };
  if (!isWork(to)) return { kind: "moved", next: { currentStep: to, steps: left, error: null } };
  return atStep({ ...now, steps: left }, { to, status: report.stepStatus ?? "in_progress", error });
};

const atStep = (now: Progress, { to, status, error }: { readonly to: EnrollmentStep; readonly status: StepStatus; readonly error: string | null }): Advance => {
  const before = now.steps[to] ?? "pending";
  if (before === status && now.currentStep === to && now.error === error) return { kind: "same" };
  if (before !== status && !LEADS_TO[before].includes(status))
    return { kind: "refused", from: `${to}:${before}`, to: `${to}:${status}`, allowed: LEADS_TO[before].map((each) => `${to}:${each}`) };
  return { kind: "moved", next: { currentStep: to, steps: { ...now.steps, [to]: status }, error } };
};

export interface Activator {
  /** What the preparing user may do now, not at the time of preparing. */
  readonly permissions: ReadonlySet<Permission>;
  readonly email: string | null;
}

/** Who may provision devices may pair in another user's name, others only in their own. Accepts any email from a user whose token carries none. */
export const mayActivateAs = ({ permissions, email }: Activator, userEmail: string): boolean =>
  permissions.has("device:provision") || email === null || email.toLowerCase() === userEmail.toLowerCase();

/** Accepts the portal's own origin, or https to a listed host, and no credentials in the URL. */
export const isReturnAllowed = (returnTo: string, { portalUrl, hosts }: { readonly portalUrl: string; readonly hosts: readonly string[] }): boolean => {
  const url = URL.canParse(returnTo) ? new URL(returnTo) : null;
  if (url === null || url.username !== "" || url.password !== "") return false;
  if (url.protocol !== "https:" && url.protocol !== "http:") return false;
  return url.origin === new URL(portalUrl).origin || (url.protocol === "https:" && hosts.includes(url.host));
};

export interface Viewer {
  /** The caller sent the pairing code of this pairing. */
  readonly hasCode: boolean;
  readonly ip: string;
}

/** A fingerprint is no secret, so ids go only to a caller with the code, or to the initiating address shortly after activation. */
export const maySeeIds = ({ hasCode, ip }: Viewer, pairing: { readonly initiatorIp: string; readonly activatedRecently: boolean }): boolean =>
  hasCode || (pairing.activatedRecently && ip === pairing.initiatorIp);

interface CodeFacts {
  readonly status: "pending" | "activated" | "rejected" | "expired";
  /** The tenant that claimed it; null before. */
  readonly tenantId: string | null;
}

/** A code belongs to the first tenant that claims it. */
const isOthers = ({ tenantId }: CodeFacts, asking: { readonly tenantId: string } | null): boolean =>
  asking !== null && tenantId !== null && tenantId !== asking.tenantId;

export const isOpenTo = (pairing: CodeFacts, asking: { readonly tenantId: string }): boolean => pairing.status === "pending" && !isOthers(pairing, asking);

/** Why a code cannot be used. A tenant gets the same answer for another tenant's code as for an unknown one. Pass null for the device, which knows its own code. */
export const whyNot = (pairing: CodeFacts | null, asking: { readonly tenantId: string } | null) => {
  if (pairing === null || isOthers(pairing, asking)) return "PAIRING_CODE_NOT_FOUND" as const;
  return pairing.status === "activated" ? ("PAIRING_ALREADY_ACTIVATED" as const) : ("PAIRING_CODE_EXPIRED" as const);
};

/** For the people who decide about a code: they also learn that somebody has rejected it. */
export const whyNotDecide = (pairing: CodeFacts | null, asking: { readonly tenantId: string }) =>
  pairing?.status === "rejected" && !isOthers(pairing, asking) ? ("PAIRING_REJECTED" as const) : whyNot(pairing, asking);

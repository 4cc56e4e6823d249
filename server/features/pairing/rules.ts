// The decisions of pairing: how an installation may move on, who may activate, where a browser may be sent.
import { ENROLLMENT_STEPS, type EnrollmentStep, ROLES, type Role, type StepStatus } from "../../../protocol/index.ts";

export interface Progress {
  readonly currentStep: EnrollmentStep;
  /** Only the steps of work; `pending`, `completed` and `failed` are states of the whole. */
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
  /** The same report again; agents repeat what they are not sure has arrived. */
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

/** The steps that may be reported next. Forward goes one at a time: a step that is not needed is reported as skipped. */
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
  // To move on is to say that the step before is done, unless it was skipped.
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
  /** Role of the preparing user now, not when the code was prepared. */
  readonly role: Role;
  readonly email: string | null;
}

/** An admin may pair in another's name; others only in their own. A user whose token carries no email cannot be compared and is believed. */
export const mayActivateAs = ({ role, email }: Activator, userEmail: string): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf("admin") || email === null || email.toLowerCase() === userEmail.toLowerCase();

/** The portal's own origin, or https to a host on the list. Never with credentials in the address. */
export const isReturnAllowed = (returnTo: string, { portalUrl, hosts }: { readonly portalUrl: string; readonly hosts: readonly string[] }): boolean => {
  const url = URL.canParse(returnTo) ? new URL(returnTo) : null;
  if (url === null || url.username !== "" || url.password !== "") return false;
  if (url.protocol !== "https:" && url.protocol !== "http:") return false;
  return url.origin === new URL(portalUrl).origin || (url.protocol === "https:" && hosts.includes(url.host));
};

export interface Viewer {
  /** The caller gave the pairing code of the very row. */
  readonly hasCode: boolean;
  readonly ip: string;
}

/** A fingerprint is no secret. Ids are for who holds the code, or for the initiating address shortly after. */
export const maySeeIds = ({ hasCode, ip }: Viewer, pairing: { readonly initiatorIp: string; readonly activatedRecently: boolean }): boolean =>
  hasCode || (pairing.activatedRecently && ip === pairing.initiatorIp);

interface CodeFacts {
  readonly status: "pending" | "activated" | "expired";
  /** Who claimed it; null: nobody yet. */
  readonly tenantId: string | null;
}

/** A code belongs to the first tenant that claims it. */
const isOthers = ({ tenantId }: CodeFacts, asking: { readonly tenantId: string } | null): boolean =>
  asking !== null && tenantId !== null && tenantId !== asking.tenantId;

export const isOpenTo = (pairing: CodeFacts, asking: { readonly tenantId: string }): boolean => pairing.status === "pending" && !isOthers(pairing, asking);

/** Why a code cannot be used. To a tenant, another tenant's code is as unknown as any; `null` asks for the device, which knows its own code. */
export const whyNot = (pairing: CodeFacts | null, asking: { readonly tenantId: string } | null) => {
  if (pairing === null || isOthers(pairing, asking)) return "PAIRING_CODE_NOT_FOUND" as const;
  return pairing.status === "activated" ? ("PAIRING_ALREADY_ACTIVATED" as const) : ("PAIRING_CODE_EXPIRED" as const);
};

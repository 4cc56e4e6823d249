// Between an update policy and the fields of its form. What the form does not show stays as it is.
import type { UpdatePolicy } from "@mooring/client";
import type { mooring } from "../../api/client.ts";

export type PolicyWishes = Parameters<typeof mooring.rollouts.createPolicy.mutate>[0];
type Phase = NonNullable<PolicyWishes["phases"]>[number];

export const phasesText = (phases: UpdatePolicy["phases"]): string =>
  phases.map(({ percent, count }) => (percent === null ? `${count}` : `${percent} %`)).join(", ");

/** Null: not all of it is a share or a number. */
export const sharesIn = (given: string): readonly Pick<Phase, "percent" | "count">[] | null => {
  const parts = given.split(/[,;\n]/).map((part) => /^\s*(\d{1,6})\s*(%?)\s*$/.exec(part));
  if (parts.some((part) => part === null)) return null;
  return parts.map((part) => (part?.[2] === "%" ? { percent: Number(part[1]) } : { count: Number(part?.[1]) }));
};

const numberIn = (fields: FormData, name: string): number => Number(fields.get(name));
const textIn = (fields: FormData, name: string): string => String(fields.get(name) ?? "").trim();

/** What the form shows of the phases, which may differ in it: the first one's, and for approval the second one's. */
export const shownOf = (phases: UpdatePolicy["phases"] | undefined) => ({
  minSuccessPercent: phases?.[0]?.minSuccessPercent ?? 90,
  soakMinutes: phases?.[0]?.soakMinutes ?? 0,
  requireApproval: phases?.[1]?.requireApproval ?? false,
});

const phasesOf = (fields: FormData, before: UpdatePolicy | undefined): Phase[] | undefined => {
  const shares = sharesIn(textIn(fields, "phases"));
  const shown = shownOf(before?.phases);
  const chosen = {
    minSuccessPercent: numberIn(fields, "minSuccess"),
    soakMinutes: numberIn(fields, "soak"),
    requireApproval: fields.get("approvalEach") !== null,
  };
  return shares?.map((share, at) => {
    const own = before?.phases[at];
    // A field that nobody changed leaves each phase its own.
    const of = <K extends keyof typeof chosen>(name: K): (typeof chosen)[K] => (own !== undefined && chosen[name] === shown[name] ? own[name] : chosen[name]);
    return {
      ...share,
      tag: own?.tag ?? null,
      minSuccessPercent: of("minSuccessPercent"),
      soakMinutes: of("soakMinutes"),
      requireApproval: at > 0 && of("requireApproval"),
    };
  });
};

const windowsOf = (fields: FormData, before: UpdatePolicy | undefined): PolicyWishes["maintenanceWindows"] => {
  const cron = textIn(fields, "cron");
  const others = before?.maintenanceWindows.slice(1) ?? [];
  return cron === "" ? [...others] : [{ cron, durationMinutes: numberIn(fields, "duration"), timezone: textIn(fields, "zone") }, ...others];
};

/** Null: the phases are not to be understood. */
export const wishesIn = (fields: FormData, before: UpdatePolicy | undefined): PolicyWishes | null => {
  const phases = phasesOf(fields, before);
  if (phases === undefined) return null;
  const version = textIn(fields, "version");
  const template = textIn(fields, "template");
  const subject =
    before?.subject ?? (template === "" ? { kind: "agent" as const, channel: textIn(fields, "channel") || "stable" } : { kind: "app" as const, template });
  return {
    subject,
    phases,
    name: textIn(fields, "name"),
    enabled: fields.get("enabled") !== null,
    description: before?.description ?? "",
    configuration: before?.configuration ?? null,
    targetVersion: version === "" ? null : version,
    maxParallel: numberIn(fields, "parallel"),
    failureThreshold: { ...before?.failureThreshold, percent: numberIn(fields, "threshold") },
    onFailure: textIn(fields, "onFailure") as NonNullable<PolicyWishes["onFailure"]>, // as: an option of the field
    maintenanceWindows: windowsOf(fields, before),
    offlinePolicy: textIn(fields, "offline") as NonNullable<PolicyWishes["offlinePolicy"]>, // as: an option of the field
    offlineWaitHours: before?.offlineWaitHours ?? 72,
    deviceTimeoutMinutes: before?.deviceTimeoutMinutes ?? 60,
    retries: before?.retries ?? 1,
    approval: { byOther: before?.approval.byOther ?? true, required: fields.get("approval") !== null },
    newDevices: fields.get("follow") === null ? "ignore" : "follow",
  };
};

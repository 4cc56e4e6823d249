// What the end of an order means for its device. An agent's word alone is never a success: the version that it greets with is, or the revision that runs.
import type { OpenMember, RolloutMemberChange } from "../store/members.ts";

export interface Decision {
  readonly now: Date;
  /** Null: an agent. */
  readonly template: string | null;
  readonly version: string;
  readonly timeoutMs: number;
  /** `pending`: undelivered orders wait for the device. `aborted`: nothing more is to be done. */
  readonly undelivered: "pending" | "aborted";
  /** The rollout was stopped, so it is we who withdrew the order. */
  readonly isStopped: boolean;
}

/** `takeBack`: the app is to be what it was, for nobody has delivered its update. */
export interface Decided extends RolloutMemberChange {
  readonly takeBack?: true;
}

const ended = (member: OpenMember, { now }: Decision, change: Pick<RolloutMemberChange, "status"> & Partial<RolloutMemberChange>): Decided => ({
  deviceId: member.device_id,
  finishedAt: now,
  deadlineAt: null,
  after: { version: versionOf(member), revision: member.app_revision },
  ...change,
});

const versionOf = (member: OpenMember): string | null => (member.app_id === null ? member.agent_version : member.app_version);
const failed = (member: OpenMember, decision: Decision, code: string, message: string | null): Decided =>
  ended(member, decision, { status: "failed", code, message });

const isThere = (member: OpenMember, { template, version }: Decision): boolean =>
  template === null
    ? member.agent_version === version
    : member.app_status === "running" && member.app_revision === member.revision && member.app_reported === member.revision;

/** Ends that only an order without a device can have. */
const isUndelivered = ({ ended_as, sent_at }: OpenMember): boolean =>
  sent_at === null && ended_as !== null && ["expired", "undeliverable", "canceled"].includes(ended_as);

const undelivered = (member: OpenMember, decision: Decision): Decided => {
  const isApp = decision.template !== null;
  const takeBack = isApp ? ({ takeBack: true } as const) : {};
  if (decision.undelivered === "aborted")
    return { ...ended(member, decision, { status: "aborted", code: "WITHDRAWN", message: null, after: null }), ...takeBack };
  // A person canceled it, not we.
  if (member.ended_as === "canceled" && !decision.isStopped) return { ...failed(member, decision, "CANCELED", "Somebody canceled the order."), ...takeBack };
  const waits = {
    status: "pending",
    code: "OFFLINE",
    message: null,
    commandId: null,
    revision: null,
    orderedAt: null,
    deadlineAt: null,
    late: member.ended_as !== "canceled",
  } as const;
  return { deviceId: member.device_id, ...waits, ...takeBack };
};

const ofApp = (member: OpenMember, decision: Decision): Decided | null => {
  const { app_status, app_revision, app_last_revision, revision, app_failure, failure_code } = member;
  const failedApp = (code: string): Decided => ({ ...failed(member, decision, code, member.app_message), lines: member.app_lines });
  if (app_status === null) return ended(member, decision, { status: "skipped", code: "APP_REMOVED", message: null });
  if ((app_last_revision ?? 0) > (revision ?? 0)) return ended(member, decision, { status: "skipped", code: "CHANGED_MEANWHILE", message: null });
  // The agent has gone back by itself.
  if (app_status === "running" && (app_revision ?? 0) < (revision ?? 0)) return failedApp(app_failure ?? "ROLLED_BACK");
  if (app_status === "error") return failedApp(app_failure ?? failure_code ?? "APP_FAILED");
  return null;
};

const ofAgent = (member: OpenMember, decision: Decision): Decided | null => {
  if (member.status === "verifying" || member.ended_as === "succeeded")
    if (member.agent_version !== member.before_version)
      return failed(member, decision, "WRONG_VERSION", `The agent runs ${member.agent_version ?? "an unknown version"}.`);
  return null;
};

/** Null: it goes on as it is. */
export const decideMember = (member: OpenMember, decision: Decision): Decided | null => {
  const { ended_as, status, sent_at, deadline_at } = member;
  if (member.is_deleted) return ended(member, decision, { status: "skipped", code: "DEVICE_DELETED", message: null });
  if (isThere(member, decision)) return ended(member, decision, { status: "succeeded", code: null, message: null });
  if (isUndelivered(member)) return undelivered(member, decision);
  const known = decision.template === null ? ofAgent(member, decision) : ofApp(member, decision);
  if (known !== null) return known;
  const deadline = deadline_at ?? (sent_at === null ? null : new Date(sent_at.getTime() + decision.timeoutMs));
  const isLate = deadline !== null && deadline <= decision.now;
  if (ended_as === null) {
    if (isLate) return ended(member, decision, { status: "timed_out", code: "DEVICE_TIMEOUT", message: null });
    return deadline === null || deadline_at !== null ? null : { deviceId: member.device_id, status, deadlineAt: deadline };
  }
  if (ended_as === "timed_out") return ended(member, decision, { status: "timed_out", code: "DEVICE_TIMEOUT", message: member.said });
  if (ended_as !== "succeeded" && ended_as !== "delivered") return failed(member, decision, member.failure_code ?? ended_as.toUpperCase(), member.said);
  if (isLate) return ended(member, decision, { status: "timed_out", code: "NOT_CONFIRMED", message: "The agent says that it is done, and does not show it." });
  return status === "verifying"
    ? null
    : { deviceId: member.device_id, status: "verifying", deadlineAt: deadline ?? new Date(decision.now.getTime() + decision.timeoutMs) };
};

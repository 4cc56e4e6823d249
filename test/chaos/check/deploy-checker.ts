// Checks deployments: compares what was ordered, what the records and their events say, and what the devices run.
import type { AppStatus, DeploymentStatus, ReportedApp } from "../../../protocol/index.ts";

export interface DeploymentEventFact {
  readonly id: string;
  /** Without "deployment.". */
  readonly type: string;
  readonly revision: number;
  readonly currentRevision: number | null;
  readonly status: DeploymentStatus;
  readonly previous: DeploymentStatus | null;
  /** Whether it tells of a failure. */
  readonly failed: boolean;
}

export interface AppFact {
  readonly appId: string;
  readonly deviceId: string;
  readonly status: AppStatus;
  readonly desiredState: "running" | "stopped" | "removed";
  readonly revision: number;
  readonly reported: Pick<ReportedApp, "state" | "revision"> | null;
  /** Of its commands. */
  readonly open: number;
}

export interface DeploymentFact {
  readonly deploymentId: string;
  readonly status: DeploymentStatus;
  readonly revision: number;
  readonly reason: string | null;
  readonly message: string | null;
  readonly app: AppFact | null;
  /** In the order in which they were written. */
  readonly events: readonly DeploymentEventFact[];
}

/** A device's own word, by the app's id. */
export type OnDevice = ReadonlyMap<string, Pick<ReportedApp, "state" | "revision">>;

export const DEPLOY_VIOLATIONS = [
  "lost",
  "hanging",
  "reasonless",
  "no-outcome",
  "outcome-twice",
  "disordered",
  "wrong-rollback",
  "not-as-desired",
  "misreported",
] as const;
export type DeployViolation = (typeof DEPLOY_VIOLATIONS)[number];

const RESTING: ReadonlySet<string> = new Set<DeploymentStatus>(["active", "failed", "stopped", "cancelled", "deleted"]);
const APP_RESTING: ReadonlySet<string> = new Set<AppStatus>(["running", "stopped", "error", "removed"]);
const isBegin = ({ type, previous }: DeploymentEventFact): boolean =>
  type === "started" && previous !== null && (previous === "pending" || RESTING.has(previous));
/** A crash and its end are told as well, but end no order. */
const isOutcome = ({ type, previous }: DeploymentEventFact): boolean =>
  type !== "created" && type !== "started" && previous !== null && !RESTING.has(previous) && previous !== "pending";

/** Of each revision as many outcomes as orders. */
const balanceOf = (events: readonly DeploymentEventFact[]): { readonly missing: boolean; readonly twice: boolean } => {
  const balance = new Map<number, number>();
  for (const event of events) balance.set(event.revision, (balance.get(event.revision) ?? 0) + Number(isBegin(event)) - Number(isOutcome(event)));
  return { missing: [...balance.values()].some((left) => left > 0), twice: [...balance.values()].some((left) => left < 0) };
};

/** Each event must begin where the one before ended. That the agent has begun is a step without an event. */
const isChain = (events: readonly DeploymentEventFact[]): boolean =>
  events.every(({ previous, type }, at) => {
    const before = events[at - 1]?.status ?? null;
    return before === null ? type === "created" : previous === before || (before === "queued" && previous === "deploying");
  });

/** An automatic rollback must end at the revision that was active before. */
const rolledBackRightly = (events: readonly DeploymentEventFact[]): boolean => {
  let active: number | null = null;
  for (const { type, currentRevision, failed } of events) {
    if (type === "rolled_back" && failed && currentRevision !== active) return false;
    if (type === "succeeded" || type === "rolled_back") active = currentRevision;
  }
  return true;
};

const isAsDesired = ({ desiredState, revision }: AppFact, found: ReturnType<OnDevice["get"]>): boolean =>
  desiredState === "removed"
    ? found === undefined || found.state === "removed"
    : found?.state === desiredState && (desiredState !== "running" || found.revision === revision);

const isReported = ({ reported, status }: AppFact, found: ReturnType<OnDevice["get"]>): boolean =>
  status === "removed" || (reported?.state === found?.state && reported?.revision === found?.revision);

const faultsOf = ({ status, reason, app, events }: DeploymentFact, onDevice: OnDevice): readonly DeployViolation[] => {
  const { missing, twice } = balanceOf(events);
  const rests = RESTING.has(status) && (app === null || (APP_RESTING.has(app.status) && app.open === 0));
  const found = app === null ? undefined : onDevice.get(app.appId);
  const must = status === "active" || status === "stopped" || status === "deleted";
  const faults: readonly (readonly [DeployViolation, boolean])[] = [
    ["hanging", !rests],
    ["reasonless", status === "failed" && reason === null],
    ["no-outcome", rests && missing],
    ["outcome-twice", twice],
    ["disordered", !isChain(events)],
    ["wrong-rollback", !rolledBackRightly(events)],
    ["not-as-desired", rests && must && app !== null && !isAsDesired(app, found)],
    ["misreported", rests && app !== null && !isReported(app, found)],
  ];
  return faults.flatMap(([fault, is]) => (is ? [fault] : []));
};

export interface DeployVerdict {
  readonly byStatus: Readonly<Record<string, number>>;
  readonly outcomes: number;
  readonly rolledBack: number;
  readonly violations: Readonly<Record<DeployViolation, readonly string[]>>;
}

/** `accepted`: the ids that the gateway answered. */
export const checkDeployments = (accepted: readonly string[], facts: readonly DeploymentFact[], onDevice: OnDevice): DeployVerdict => {
  const known = new Set(facts.map(({ deploymentId }) => deploymentId));
  const found = facts.map((fact) => ({ id: fact.deploymentId, faults: faultsOf(fact, onDevice) }));
  const byStatus: Record<string, number> = {};
  for (const { status, reason } of facts) {
    const name = status === "failed" ? `failed ${reason}` : status;
    byStatus[name] = (byStatus[name] ?? 0) + 1;
  }
  const all = facts.flatMap(({ events }) => events);
  const broken = (kind: DeployViolation): readonly string[] => found.flatMap(({ id, faults }) => (faults.includes(kind) ? [id] : []));
  return {
    byStatus,
    outcomes: all.filter(isOutcome).length,
    rolledBack: all.filter(({ type, failed }) => type === "rolled_back" && failed).length,
    violations: {
      // as: one entry for each kind
      ...(Object.fromEntries(DEPLOY_VIOLATIONS.map((kind) => [kind, broken(kind)])) as Record<DeployViolation, readonly string[]>),
      lost: accepted.filter((id) => !known.has(id)),
    },
  };
};

interface Told {
  readonly id: string;
  readonly subjectId: string;
}
/** What a viewer of the live events missed, and of how many subjects it saw the events in another order than they were written. */
export const checkViewed = (written: readonly Told[], viewed: readonly Told[]): { readonly unseen: number; readonly misordered: number } => {
  const firsts = new Map<string, Told>();
  for (const event of viewed) if (!firsts.has(event.id)) firsts.set(event.id, event);
  const bySubject = (events: Iterable<Told>): ReadonlyMap<string, readonly string[]> => {
    const subjects = new Map<string, string[]>();
    for (const { id, subjectId } of events) subjects.set(subjectId, [...(subjects.get(subjectId) ?? []), id]);
    return subjects;
  };
  const seen = bySubject(firsts.values());
  const ordered = [...bySubject(written)].filter(([subject, ids]) => {
    const known = ids.filter((id) => firsts.has(id));
    return (seen.get(subject) ?? []).filter((id) => known.includes(id)).join(" ") !== known.join(" ");
  });
  return { unseen: written.filter(({ id }) => !firsts.has(id)).length, misordered: ordered.length };
};

// The list of the features, and what connects them: a feature never imports another's code, so it gets the capabilities of others here.
import { type CommandType, type Contract, contract } from "../../protocol/index.ts";
import type { OutcomeHandler } from "../core/ports/command-outcomes.ts";
import { createAgentSessions, createOpenRepairs } from "../features/devices/index.ts";
import type { FeatureParts, FeaturesOf } from "../features/kit.ts";
import { createBatch } from "../platform/database/batch.ts";
import { access } from "./access.ts";
import { spreadChanges } from "./changes.ts";
import type { InstallationDeps, ServingDeps, Wiring } from "./deps.ts";
import { fleet } from "./fleet.ts";
import { keeping } from "./keeping.ts";
import { createWiring, notServing } from "./kit.ts";
import { type HandlersOfAll, type Made, makeLazily, type Peers } from "./peers.ts";
import { service } from "./service.ts";
import { signals } from "./signals.ts";
import { transfer } from "./transfer.ts";
import { workloads } from "./workloads.ts";

type MakersOf<F> = { readonly [Name in keyof F]: () => F[Name] };

/** A group of the contract without a feature does not compile. */
const makersOf = (wiring: Wiring, peers: Peers & HandlersOfAll) =>
  ({
    ...access(wiring, peers),
    ...fleet(wiring, peers),
    ...workloads(wiring, peers),
    ...keeping(wiring, peers),
    ...signals(wiring, peers),
    ...service(wiring, peers),
    ...transfer(wiring, peers),
  }) satisfies MakersOf<FeaturesOf<Contract>>;

export type AllFeatures = Made<ReturnType<typeof makersOf>>;

const prepare = (deps: InstallationDeps, serving: ServingDeps) => {
  const features = {} as AllFeatures; // as: makeLazily gives it every member
  const wiring = createWiring(deps, serving, features);
  makeLazily(features, makersOf(wiring, features));
  return { features, wiring };
};

type AnyParts = FeatureParts & { readonly handlers: unknown; readonly outcomes?: Readonly<Record<string, OutcomeHandler>> };

/** Hands the parts of a feature to those who run them: the outbox, the engine of steps, and the registries of outcomes, counters, what is stuck and what needs attention. */
const connect = (name: string, parts: AnyParts, { outbox, manyEngine, outcomes, counters, stuck, attention }: Wiring): void => {
  const commandTypes: Readonly<Record<string, CommandType>> = contract[name as keyof Contract].commands;
  for (const [key, command] of Object.entries(commandTypes))
    outcomes.set(command.type, { command, handle: parts.outcomes?.[key] as OutcomeHandler, progress: parts.progress?.[key], hideFor: parts.hideFor }); // as: `Feature` requires one for each
  if (parts.consumer !== undefined) outbox.consume(name, parts.consumer);
  if (parts.stuck !== undefined) stuck.push(parts.stuck);
  if (parts.attention !== undefined) attention.push(parts.attention);
  for (const stepper of parts.steppers ?? []) manyEngine.add(stepper);
  Object.assign(counters, parts.counters);
};

interface OfOperator {
  /** Opens the repair window of every device that is not online. Returns how many. */
  readonly openRepairs: () => Promise<number>;
}

/** Opens some features, with those that they need, where nothing serves and no job runs: for the command line. */
export const openSome = <Name extends keyof AllFeatures>(deps: InstallationDeps, names: readonly Name[]): Pick<AllFeatures, Name> & OfOperator => {
  const { features, wiring } = prepare(deps, notServing);
  const opened = Object.fromEntries(names.map((name) => [name, features[name]])) as Pick<AllFeatures, Name>; // as: by these names
  return { ...opened, openRepairs: createOpenRepairs(wiring.kit) };
};

export const openFeatures = (deps: InstallationDeps, serving: ServingDeps) => {
  const { features, wiring } = prepare(deps, serving);
  const { kit, outbox, manyEngine, outbound, watch, mails } = wiring;
  const all: AllFeatures = { ...features };
  const parts: readonly (readonly [string, AnyParts])[] = Object.entries(all);
  for (const [name, each] of parts) connect(name, each, wiring);
  spreadChanges({ ...all, outbox, changes: serving.cluster.changes });
  const { devices, commands } = all;
  const agentSessions = createAgentSessions({ db: kit.db, presence: devices.presence, delivery: commands.delivery, createBatch });
  return {
    ...all,
    all,
    outbox,
    outbound,
    watch,
    agentSessions,
    jobs: [...outbox.jobs, manyEngine.job, ...mails.jobs, ...parts.flatMap(([, { jobs = [] }]) => jobs)],
    edge: parts.flatMap(([, { edge }]) => edge ?? []),
    metricCounters: [
      {
        name: "many_step_failures_total",
        help: "Steps of rollouts and bulk operations that failed and are taken again, by kind",
        labels: ["kind"],
        read: manyEngine.stepFailures,
      },
    ],
    gauges: [...mails.gauges, ...parts.flatMap(([, { gauges = [] }]) => gauges)],
  };
};
export type Features = ReturnType<typeof openFeatures>;

/** What the gateway identifies callers by. */
export const lookupsOf = ({ account, apiKeys, devices, general, impersonations, sessions, tenants }: Features) => ({
  agents: devices.registry,
  apiKeys: apiKeys.lookup,
  tenants: tenants.lookup,
  memberships: tenants.memberships,
  sessions: sessions.lookup,
  impersonations: impersonations.lookup,
  isVisible: devices.isVisible,
  tickets: general.streamTickets,
  defaultTenantOf: account.defaultTenantOf,
});

// Backup destinations, and the restic repositories of devices at them.
import { type BackupDestination, type BackupFailure, contract, type DeviceId } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Happened, happened } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { type Outcome, orderOf } from "../../core/ports/command-outcomes.ts";
import type { RepositoryGate } from "../../core/ports/repository-access.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createRepositoryAccess, type FindOrder } from "./access.ts";
import { createDestinationAttention } from "./attention.ts";
import { createDestinationChanges, type FindUses } from "./changes.ts";
import { createRepositoryGate, type GateDeps } from "./gate.ts";
import { createPlaces, findPlace, type Places, unknownDestination } from "./places.ts";
import { createRecovery } from "./recovery.ts";
import { createRepositoryTokens } from "./repository-tokens.ts";
import { type DestinationRow, findDestination, pageOfDestinations, saveDestination, shownDestinations } from "./store/destinations.ts";
import { addBytes, findRepository, markInitialized, saveRepository, storedBytes, takePrunable } from "./store/repositories.ts";

export type { FindOrder } from "./access.ts";
export type { FindUses } from "./changes.ts";
export type { Places } from "./places.ts";
export type { DestinationRow } from "./store/destinations.ts";
export type { PrunableRow } from "./store/repositories.ts";

export interface DestinationsDeps
  extends Pick<FeatureKit, "db" | "clock" | "emit" | "enqueue" | "secretBox" | "audit" | "watch">,
    Pick<GateDeps, "storageLimit"> {
  readonly repositoriesUrl: () => string | null;
  readonly findUses: FindUses;
  readonly findOrder: FindOrder;
  readonly isKnown: (db: Clients, scope: SystemScope, deviceId: string) => Promise<boolean>;
  /** Throws BACKUP_ENGINE_MISSING if the device has said that it has no restic. */
  readonly requireEngine: (tx: Clients, scope: SystemScope, deviceId: string) => Promise<void>;
  /** The failure of a command by how it ended. */
  readonly failureOf: (outcome: Outcome) => BackupFailure;
}

export interface Repositories extends Pick<Places, "hold" | "repository" | "access"> {
  readonly takePrunable: typeof takePrunable;
  readonly save: typeof saveRepository;
  readonly add: typeof addBytes;
  readonly markInitialized: typeof markInitialized;
  /** Null if the destination or the repository is gone. */
  readonly find: typeof findPlace;
  /** Whether the gateway counts what is stored there itself. */
  isCounted(db: Clients, scope: SystemScope, destinationId: string): Promise<boolean>;
  /** What a command at this destination says of it: null, it works. */
  heard(tx: Tx, scope: SystemScope, at: { readonly destinationId: string; readonly deviceId: DeviceId }, failure: BackupFailure | null): Promise<void>;
}

export interface DestinationsFeature extends Feature<typeof contract.backupDestinations> {
  readonly repositories: Repositories;
  readonly gate: RepositoryGate;
}

const GIGABYTE = 1_000_000_000;
const { tested, failed, recovered } = contract.backupDestinations.events;

export const createBackupDestinations = (deps: DestinationsDeps): DestinationsFeature => {
  const { db, clock, emit, enqueue, secretBox, failureOf } = deps;
  const tokens = createRepositoryTokens(secretBox, clock.now);
  const places = createPlaces({ ...deps, tokens });
  const show = async (tx: Clients, scope: SystemScope, row: DestinationRow): Promise<BackupDestination> => {
    const [record] = await shownDestinations(tx, scope, [row]);
    if (record === undefined) throw new Error("a destination got lost");
    return record;
  };
  const heard: Repositories["heard"] = async (tx, scope, { destinationId, deviceId }, failure) => {
    const row = await findDestination(tx, scope, destinationId);
    if (row === null) return;
    await saveDestination(tx, scope, destinationId, { lastCheckedAt: clock.now(), lastError: failure, silent: true });
    const data = { destinationId: row.destinationId, name: row.name, kind: row.kind, deviceId };
    if (failure !== null) {
      if (row.lastError === null) await emit(tx, [happened(scope, failed, destinationId, { ...data, failure })]);
    } else if (row.lastError !== null) await emit(tx, [happened(scope, recovered, destinationId, data)]);
  };
  const readOf = async (scope: TenantScope, destinationId: string): Promise<DestinationRow> => {
    const row = await findDestination(db, scope, destinationId);
    if (row === null) throw unknownDestination(destinationId);
    return row;
  };

  return {
    handlers: implement(contract.backupDestinations, {
      ...createDestinationChanges({ ...deps, places, show }),
      ...createRecovery({ ...deps, places }),
      ...createRepositoryAccess({ ...deps, places }),
      list: async ({ scope }, query) => {
        await db.tx((tx) => places.ensureDefault(tx, scope));
        const { items, ...page } = await pageOfDestinations(db, scope, query);
        return pageWithActors(db, scope, { ...page, items: await shownDestinations(db, scope, items) });
      },
      get: async ({ scope }, { destinationId }) => withActor(db, scope, await show(db, scope, await readOf(scope, destinationId))),
      test: ({ scope, commit }, { destinationId, deviceId, initialize }) =>
        commit(async (tx, afterwards) => {
          if (!(await deps.isKnown(tx, scope, deviceId))) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
          const row = await places.hold(tx, scope, destinationId);
          await deps.requireEngine(tx, scope, deviceId);
          await places.repository(tx, scope, { destinationId: row.destinationId, deviceId });
          const order = orderOf(contract.backupDestinations.commands.test, {
            deviceId,
            key: `test:${destinationId}:${clock.now().getTime()}`,
            orderedBy: actorOf(scope.principal),
            payload: { destinationId: row.destinationId, initialize },
          });
          const { commandIds, notify } = await enqueue(tx, scope, [order]);
          afterwards(notify);
          const [commandId] = commandIds;
          if (commandId === undefined) throw new Error("an order has no command");
          return { destinationId: row.destinationId, deviceId, commandId };
        }),
    }),
    outcomes: {
      test: async (tx, outcome) => {
        const { scope, deviceId, payload } = outcome;
        const at = { destinationId: payload.destinationId, deviceId };
        if (outcome.kind !== "succeeded") return heard(tx, scope, at, failureOf(outcome));
        await heard(tx, scope, at, null);
        const row = await findDestination(tx, scope, at.destinationId);
        const repository = await findRepository(tx, scope, at);
        if (row === null || repository === null) return;
        await markInitialized(tx, scope, repository.repositoryId, clock.now());
        const data = { destinationId: row.destinationId, name: row.name, kind: row.kind, deviceId };
        await emit(tx, [happened(scope, tested, row.destinationId, data) as Happened<typeof tested>]);
      },
    },
    attention: createDestinationAttention(deps),
    counters: { storageGB: async (sql, scope) => Math.round(((await storedBytes(sql, scope)) / GIGABYTE) * 1_000) / 1_000 },
    repositories: {
      ...places,
      isCounted: async (tx, scope, destinationId) => (await findDestination(tx, scope, destinationId))?.kind === "gateway",
      heard,
      find: findPlace,
      takePrunable,
      save: saveRepository,
      add: addBytes,
      markInitialized,
    },
    gate: createRepositoryGate({ ...deps, tokens }),
  };
};

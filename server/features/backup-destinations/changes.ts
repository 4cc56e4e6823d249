// Changes of destinations by people. One is always the default; one that something uses stays.
import { type BackupDestination, contract } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { given } from "../../core/rows/records.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { credentialsContext, type Places, unknownDestination } from "./places.ts";
import { checkCredentials, checkSettings, type DestinationCredentials, type GivenSettings, isSamePlace } from "./settings.ts";
import {
  clearDefault,
  countDestinations,
  type DestinationRow,
  deleteDestination,
  insertDestination,
  lockDestination,
  lockDestinations,
  newDestinationId,
  saveDestination,
} from "./store/destinations.ts";
import { unmarkInitialized } from "./store/repositories.ts";

const MAX_DESTINATIONS = 500;
const MAX_REFERENCES = 20;

export interface DestinationUse {
  readonly type: "backup" | "backupPolicy" | "default";
  readonly id: string;
}
/** Backups that are there and policies that name it, at most so many of each kind. */
export type FindUses = (tx: Tx, scope: SystemScope, destinationId: string, limit: number) => Promise<readonly DestinationUse[]>;

export interface DestinationChangesDeps extends Pick<FeatureKit, "emit" | "secretBox"> {
  readonly places: Places;
  readonly findUses: FindUses;
  readonly show: (tx: Clients, scope: SystemScope, row: DestinationRow) => Promise<BackupDestination>;
}

interface GivenChange {
  readonly name?: string | undefined;
  readonly settings?: GivenSettings | undefined;
  readonly credentials?: DestinationCredentials | undefined;
  readonly isDefault?: true | undefined;
}

const { created, updated, deleted } = contract.backupDestinations.events;
const inUse = (destinationId: string, references: readonly DestinationUse[]): AppError =>
  new AppError("BACKUP_DESTINATION_IN_USE", { details: { destinationId, references } });

export const createDestinationChanges = (deps: DestinationChangesDeps): Pick<Handlers<typeof contract.backupDestinations>, "create" | "change" | "remove"> => {
  const { emit, secretBox, places, findUses, show } = deps;
  const tell = (tx: Tx, scope: SystemScope, event: typeof created | typeof updated | typeof deleted, { destinationId, name, kind }: DestinationRow) =>
    emit(tx, [happened(scope, event, destinationId, { destinationId, name, kind })]);
  const seal = (scope: SystemScope, destinationId: string, credentials: object | null) =>
    credentials === null ? null : secretBox.seal(JSON.stringify(credentials), credentialsContext(scope, destinationId));

  const requireNoBackups = async (tx: Tx, scope: SystemScope, destinationId: string): Promise<void> => {
    const uses = (await findUses(tx, scope, destinationId, MAX_REFERENCES)).filter(({ type }) => type === "backup");
    if (uses.length > 0) throw inUse(destinationId, uses);
  };
  const changeOf = (scope: SystemScope, { kind, destinationId, settings }: DestinationRow, { name, isDefault, ...more }: GivenChange) => ({
    settings: more.settings === undefined ? settings : checkSettings(kind, more.settings),
    ...given({ name, isDefault }),
    ...(more.credentials === undefined ? {} : { credentials: seal(scope, destinationId, checkCredentials(kind, more.credentials)) }),
  });

  return {
    create: ({ scope, commit, fail }, { name, kind, settings: wanted, credentials, isDefault }) => {
      const settings = checkSettings(kind, wanted);
      const secrets = checkCredentials(kind, credentials);
      if (kind === "gateway" && !places.isServed()) throw fail("BACKUP_DESTINATION_UNREACHABLE");
      return commit(async (tx) => {
        await places.ensureDefault(tx, scope);
        await lockDestinations(tx, scope);
        if ((await countDestinations(tx, scope)) >= MAX_DESTINATIONS)
          throw fail("BACKUP_LIMIT_REACHED", { limit: MAX_DESTINATIONS, resource: "backup destinations" });
        if (isDefault) await clearDefault(tx, scope);
        const destinationId = newDestinationId();
        const made = { destinationId, name, kind, settings, isDefault, createdBy: actorOf(scope.principal), credentials: seal(scope, destinationId, secrets) };
        const row = await insertDestination(tx, scope, made);
        await tell(tx, scope, created, row);
        return show(tx, scope, row);
      });
    },
    change: ({ scope, commit, fail }, { destinationId, version, ...given }) =>
      commit(async (tx) => {
        await lockDestinations(tx, scope);
        const before = await lockDestination(tx, scope, destinationId);
        if (before === null) throw unknownDestination(destinationId);
        if (version !== undefined && version !== before.version) throw fail("VERSION_CONFLICT", { currentVersion: before.version });
        const change = changeOf(scope, before, given);
        if (!isSamePlace(change.settings, before.settings)) {
          await requireNoBackups(tx, scope, destinationId);
          await unmarkInitialized(tx, scope, destinationId);
        }
        if (given.isDefault === true && !before.isDefault) await clearDefault(tx, scope);
        const row = await saveDestination(tx, scope, destinationId, change);
        await tell(tx, scope, updated, row);
        return show(tx, scope, row);
      }),
    remove: ({ scope, commit }, { destinationId }) =>
      commit(async (tx) => {
        const row = await lockDestination(tx, scope, destinationId);
        if (row === null) throw unknownDestination(destinationId);
        const uses = await findUses(tx, scope, destinationId, MAX_REFERENCES);
        const references: readonly DestinationUse[] = row.isDefault ? [{ type: "default", id: destinationId }, ...uses] : uses;
        if (references.length > 0) throw inUse(destinationId, references);
        await deleteDestination(tx, scope, destinationId);
        await tell(tx, scope, deleted, row);
        return null;
      }),
  };
};

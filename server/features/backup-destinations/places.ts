// Where a device's backups go: the tenant's default destination, the device's repository at one, and the access to it.
import { randomBytes } from "node:crypto";
import type { BackupDestinationId, DeviceId, RepositoryAccess, RepositoryRight } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { SealedContext } from "../../platform/keys/sealed.ts";
import type { FeatureKit } from "../kit.ts";
import type { RepositoryTokens } from "./repository-tokens.ts";
import { type DestinationCredentials, locate } from "./settings.ts";
import {
  type DestinationRow,
  findDefault,
  findDestination,
  insertDestination,
  lockDestination,
  lockDestinations,
  newDestinationId,
} from "./store/destinations.ts";
import { findRepository, insertRepository, type RepositoryRow } from "./store/repositories.ts";

const PASSWORD_BYTES = 32;
const HOUR_MS = 3_600_000;
/** A command's own deadline may be further, never the access of a lost device. */
const MAX_SECONDS = 12 * 3_600;

export const unknownDestination = (destinationId: string): AppError => new AppError("BACKUP_DESTINATION_NOT_FOUND", { details: { destinationId } });
export const credentialsContext = ({ tenantId }: SystemScope, destinationId: string): SealedContext => `backup-destination|${tenantId}|${destinationId}`;
const passwordContext = ({ tenantId }: SystemScope, repositoryId: string): SealedContext => `backup-repository|${tenantId}|${repositoryId}`;

export interface PlacesDeps extends Pick<FeatureKit, "clock" | "secretBox"> {
  readonly tokens: RepositoryTokens;
  /** Where this installation serves repositories; null: it serves none. */
  readonly repositoriesUrl: () => string | null;
}

export interface WantedAccess {
  readonly right: RepositoryRight;
  /** Somebody has given up the repository that is lost. */
  readonly isRenewed?: boolean;
  readonly commandId: string | null;
  readonly deviceId: DeviceId;
  readonly deadlineAt: Date;
}

export interface Places {
  /** Makes the first one if the tenant has none. */
  ensureDefault(tx: Tx, scope: SystemScope): Promise<DestinationRow>;
  /** Null takes the default. Holds the destination until the transaction ends. Throws BACKUP_DESTINATION_NOT_FOUND or BACKUP_DESTINATION_UNREACHABLE. */
  hold(tx: Tx, scope: SystemScope, destinationId: string | null): Promise<DestinationRow>;
  /** The device's repository there, made if need be. */
  repository(tx: Clients, scope: SystemScope, at: { readonly destinationId: string; readonly deviceId: DeviceId }): Promise<RepositoryRow>;
  access(scope: SystemScope, at: { readonly destination: DestinationRow; readonly repository: RepositoryRow }, wanted: WantedAccess): RepositoryAccess;
  passwordOf(scope: SystemScope, repository: RepositoryRow): string;
  isServed(): boolean;
}

export const createPlaces = ({ clock, secretBox, tokens, repositoriesUrl }: PlacesDeps): Places => {
  const credentialsOf = (scope: SystemScope, { destinationId, credentials }: DestinationRow): DestinationCredentials | null =>
    credentials === null ? null : (JSON.parse(secretBox.open(credentials, credentialsContext(scope, destinationId))) as DestinationCredentials); // as: only we seal it
  const passwordOf: Places["passwordOf"] = (scope, { repositoryId, password }) => secretBox.open(password, passwordContext(scope, repositoryId));
  const isServed = (): boolean => repositoriesUrl() !== null;

  const ensureDefault: Places["ensureDefault"] = async (tx, scope) => {
    const all = { tenantId: scope.tenantId };
    const found = await findDefault(tx, all);
    if (found !== null) return found;
    await lockDestinations(tx, all);
    const second = await findDefault(tx, all);
    if (second !== null) return second;
    const kind = isServed() ? "gateway" : "local";
    const name = kind === "gateway" ? "This installation" : "The device itself";
    const settings = { path: null, endpoint: null, bucket: null, prefix: null, region: null, url: null };
    return insertDestination(tx, all, { destinationId: newDestinationId(), name, kind, settings, credentials: null, isDefault: true, createdBy: "system" });
  };

  return {
    ensureDefault,
    isServed,
    passwordOf,
    hold: async (tx, scope, destinationId) => {
      const id = destinationId ?? (await ensureDefault(tx, scope)).destinationId;
      const found = await lockDestination(tx, { tenantId: scope.tenantId }, id);
      if (found === null) throw unknownDestination(id);
      if (found.kind === "gateway" && !isServed()) throw new AppError("BACKUP_DESTINATION_UNREACHABLE");
      return found;
    },
    repository: async (tx, { tenantId }, at) => {
      const found = await findRepository(tx, { tenantId }, at);
      if (found !== null) return found;
      const repositoryId = newId("rep");
      const password = secretBox.seal(randomBytes(PASSWORD_BYTES).toString("base64url"), passwordContext({ tenantId }, repositoryId));
      return insertRepository(tx, { tenantId }, { ...at, repositoryId, password });
    },
    access: (scope, { destination, repository }, { right, isRenewed = false, commandId, deviceId, deadlineAt }) => {
      const { tenantId } = scope;
      const { repositoryId } = repository;
      const mayInitialize = right === "append" && (isRenewed || repository.initializedAt === null);
      // In whole hours, so that two answers within one are the same.
      const latest = secondsFromNow(MAX_SECONDS, new Date(Math.floor(clock.now().getTime() / HOUR_MS) * HOUR_MS));
      const expiresAt = commandId !== null && deadlineAt > latest ? latest : deadlineAt;
      const url = destination.kind === "gateway" ? repositoriesUrl() : null;
      const gateway = url === null ? null : { url, token: tokens.mint({ tenantId, deviceId, repositoryId, right, mayInitialize, commandId, expiresAt }) };
      const { kind, settings, destinationId } = destination;
      return {
        destinationId: destinationId as BackupDestinationId,
        kind,
        right,
        mayInitialize,
        ...locate({ kind, settings, repositoryId, credentials: credentialsOf(scope, destination) }, gateway),
        password: passwordOf(scope, repository),
        expiresAt: expiresAt.toISOString(),
      };
    },
  };
};

/** Null if the destination or the repository is gone. */
export const findPlace = async (db: Clients, { tenantId }: SystemScope, at: { readonly destinationId: string; readonly deviceId: string }) => {
  const destination = await findDestination(db, { tenantId }, at.destinationId);
  const repository = await findRepository(db, { tenantId }, at);
  return destination === null || repository === null ? null : { destination, repository };
};

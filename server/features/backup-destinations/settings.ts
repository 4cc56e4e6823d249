// What the settings of a destination must be for its kind, and where a device's repository is at it.
import type { BackupDestination, DestinationKind } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { given as givenOnly } from "../../core/rows/records.ts";

export type DestinationSettings = BackupDestination["settings"];
export type GivenSettings = { readonly [K in keyof DestinationSettings]?: DestinationSettings[K] | undefined };
export interface DestinationCredentials {
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

interface Rules {
  readonly required: readonly (keyof DestinationSettings)[];
  readonly optional: readonly (keyof DestinationSettings)[];
  readonly secrets: readonly (keyof DestinationCredentials)[];
  readonly secretsRequired: boolean;
}
const RULES: Readonly<Record<DestinationKind, Rules>> = {
  local: { required: [], optional: ["path"], secrets: [], secretsRequired: false },
  gateway: { required: [], optional: [], secrets: [], secretsRequired: false },
  s3: { required: ["endpoint", "bucket"], optional: ["prefix", "region"], secrets: ["accessKeyId", "secretAccessKey"], secretsRequired: true },
  rest: { required: ["url"], optional: [], secrets: ["username", "password"], secretsRequired: false },
};
const EMPTY: DestinationSettings = { path: null, endpoint: null, bucket: null, prefix: null, region: null, url: null };

const namesOf = <T extends object>(value: T): (keyof T)[] =>
  Object.entries(value).flatMap(([name, each]) => (each === undefined || each === null ? [] : [name as keyof T])); // as: entries lose their keys

const invalid = (reason: string): AppError => new AppError("BACKUP_DESTINATION_INVALID", { details: { reason } });

export const checkSettings = (kind: DestinationKind, given: GivenSettings): DestinationSettings => {
  const { required, optional } = RULES[kind];
  const named = namesOf(given);
  const missing = required.find((name) => !named.includes(name));
  if (missing !== undefined) throw invalid(`${kind} needs settings.${missing}`);
  const strange = named.find((name) => !required.includes(name) && !optional.includes(name));
  if (strange !== undefined) throw invalid(`${kind} has no settings.${strange}`);
  return { ...EMPTY, ...givenOnly(given) };
};

/** Null: none. */
export const checkCredentials = (kind: DestinationKind, given: DestinationCredentials): DestinationCredentials | null => {
  const { secrets, secretsRequired } = RULES[kind];
  const named = namesOf(given);
  const strange = named.find((name) => !secrets.includes(name));
  if (strange !== undefined) throw invalid(`${kind} has no credentials.${strange}`);
  if (named.length === 0 && !secretsRequired) return null;
  const missing = secrets.find((name) => !named.includes(name));
  if (missing !== undefined) throw invalid(`${kind} needs credentials.${missing}`);
  return given;
};

/** Settings that name the same place: what is stored there stays reachable. */
export const isSamePlace = (a: DestinationSettings, b: DestinationSettings): boolean =>
  a.path === b.path && a.bucket === b.bucket && a.prefix === b.prefix && a.endpoint === b.endpoint && a.url === b.url;

export interface Located {
  readonly repository: string;
  readonly environment: Record<string, string>;
}
export interface RepositoryPlace {
  readonly kind: DestinationKind;
  readonly settings: DestinationSettings;
  readonly credentials: DestinationCredentials | null;
  readonly repositoryId: string;
}
interface GatewayPlace {
  /** Where the gateway serves repositories, such as `https://backups.example.org:8082`. */
  readonly url: string;
  readonly token: string;
}

const withLogin = (url: string, username: string, password: string): string => {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${encodeURIComponent(username)}:${encodeURIComponent(password)}@${host}${pathname}`;
};
const trimmed = (url: string): string => url.replace(/\/+$/, "");

/** As restic takes it. `gateway` is null for the other kinds. */
export const locate = ({ kind, settings, credentials, repositoryId }: RepositoryPlace, gateway: GatewayPlace | null): Located => {
  switch (kind) {
    case "local":
      return { repository: `${settings.path === null ? "repositories" : trimmed(settings.path)}/${repositoryId}`, environment: {} };
    case "gateway": {
      if (gateway === null) throw new AppError("BACKUP_DESTINATION_UNREACHABLE");
      return { repository: `rest:${withLogin(`${trimmed(gateway.url)}/restic/${repositoryId}/`, "mooring", gateway.token)}`, environment: {} };
    }
    case "s3": {
      const path = [settings.bucket, ...(settings.prefix === null ? [] : [settings.prefix]), repositoryId].join("/");
      const { accessKeyId = "", secretAccessKey = "" } = credentials ?? {};
      const region = settings.region === null ? {} : { AWS_DEFAULT_REGION: settings.region };
      return {
        repository: `s3:${trimmed(settings.endpoint ?? "")}/${path}`,
        environment: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, ...region },
      };
    }
    case "rest": {
      const url = `${trimmed(settings.url ?? "")}/${repositoryId}/`;
      const { username, password } = credentials ?? {};
      return { repository: `rest:${username === undefined || password === undefined ? url : withLogin(url, username, password)}`, environment: {} };
    }
  }
};

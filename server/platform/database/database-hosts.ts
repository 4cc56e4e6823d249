// A database with standbys has several servers, and sessions lead to the one that takes writes. Which one that is stays settled until a session or the probe
// casts doubt on it.
import pg from "pg";
import type { Log } from "../telemetry/log.ts";
import { urlsOf } from "./database-urls.ts";

const ANSWERS_WITHIN_MS = 2_000;
/** While none takes writes, calls fail at once and ask no more often than this. */
const AGAIN_MS = 500;
export interface DatabaseHosts {
  /** That of the server that takes writes, as far as is known. */
  current(): string;
  /** Sessions to it fail, or it refuses writes. */
  doubt(): void;
  /** Null if `current` can be used at once; else resolves when every server was asked. */
  settling(): Promise<void> | null;
}

export interface DatabaseHostsOptions {
  readonly url: string;
  readonly applicationName: string;
  readonly elapsed: () => number;
  readonly log?: Pick<Log, "info"> | undefined;
  /** Another server takes writes now. */
  readonly onMoved?: () => void;
}

/** What kind of server a session leads to. */
export interface ServerKind {
  readonly standby: boolean;
  readonly read_only: boolean;
}
export const readServerKind = async (client: pg.ClientBase): Promise<ServerKind> => {
  const { rows } = await client.query<ServerKind>("select pg_is_in_recovery() as standby, current_setting('transaction_read_only') = 'on' as read_only");
  const [kind] = rows;
  if (kind === undefined) throw new Error("the probe got no row");
  return kind;
};

const takesWrites = async (url: string, applicationName: string): Promise<boolean> => {
  const client = new pg.Client({
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: ANSWERS_WITHIN_MS,
    query_timeout: ANSWERS_WITHIN_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const { standby, read_only: readOnly } = await readServerKind(client);
    return !(standby || readOnly);
  } finally {
    void client.end().catch(() => undefined);
  }
};

export const createDatabaseHosts = ({ url, applicationName, elapsed, log, onMoved }: DatabaseHostsOptions): DatabaseHosts => {
  const urls = urlsOf(url);
  let current = urls[0] ?? url;
  let doubted = urls.length > 1;
  let asking: Promise<void> | null = null;
  let askedMs = Number.NEGATIVE_INFINITY;

  const ask = async (): Promise<void> => {
    askedMs = elapsed();
    const writer = async (candidate: string): Promise<string> => {
      if (await takesWrites(candidate, applicationName)) return candidate;
      throw new Error("takes no writes");
    };
    const found = await Promise.any(urls.map(writer)).catch(() => null);
    if (found === null) return;
    doubted = false;
    if (found === current) return;
    current = found;
    log?.info({ server: new URL(found).host }, "this server of the database takes writes now");
    onMoved?.();
  };
  return {
    current: () => current,
    doubt: () => {
      doubted = urls.length > 1;
    },
    settling: () => {
      if (!doubted) return null;
      if (asking === null && elapsed() - askedMs < AGAIN_MS) return null;
      asking ??= ask().finally(() => {
        asking = null;
      });
      return asking;
    },
  };
};

/** The URL of the server that takes writes, as far as is known, for whoever connects once. */
export const findWriter = async (options: DatabaseHostsOptions): Promise<string> => {
  const hosts = createDatabaseHosts(options);
  await hosts.settling();
  return hosts.current();
};

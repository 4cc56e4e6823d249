// What the edge asks of custom domains in every handshake and request: the certificate of a server name (SNI) and what a host leads to. From memory.
import { createSecureContext, type SecureContext } from "node:tls";
import type { Clock } from "../../core/clock.ts";
import { createBoundedCache } from "../../core/structures/bounded-cache.ts";
import type { Db } from "../../platform/database/db.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import { isServed } from "./states.ts";
import { type DomainRow, findVerified } from "./store.ts";

/** A host and what it leads to. */
export interface ServedDomain {
  readonly tenantId: string;
  readonly domainId: string;
  readonly target: { readonly kind: string; readonly id: string } | null;
}

interface Entry {
  readonly at: number;
  readonly tenantId: string | null;
  readonly context: SecureContext | null;
  readonly served: ServedDomain | null;
}

export interface ServedDomainsDeps {
  readonly db: Db;
  readonly clock: Pick<Clock, "elapsed">;
  readonly secretBox: SecretBox;
}

/** Contexts in memory; a handshake for any other name reads one row. */
const MAX_ENTRIES = 1_000;
/** Names that nobody has verified, mostly of scanners, must not push the others out. */
const MAX_UNKNOWN = 5_000;
// Hints clear entries at once, and may get lost.
const KNOWN_MS = 60_000;
/** What cannot be a custom domain costs no read. */
const HOSTNAME = /^(?=.{4,253}$)[a-z\d-]+(?:\.[a-z\d-]+)+$/;
const UNKNOWN_MS = 5_000;

const targetOf = ({ targetKind, targetId }: DomainRow): ServedDomain["target"] =>
  targetKind === null || targetId === null ? null : { kind: targetKind, id: targetId };

export const createServedDomains = ({ db, clock, secretBox }: ServedDomainsDeps) => {
  const known = createBoundedCache<Entry>(MAX_ENTRIES);
  const unknown = createBoundedCache<Entry>(MAX_UNKNOWN);
  const pending = new Map<string, Promise<Entry>>();
  /** Counts what has been forgotten: a row that was read meanwhile may be older. */
  let forgotten = 0;

  const contextOf = ({ certChain, certKey, tenantId, domainId }: DomainRow): SecureContext | null =>
    certChain === null || certKey === null
      ? null
      : createSecureContext({ cert: certChain, key: secretBox.open(certKey, `domain-certificate|${tenantId}|${domainId}`) });

  const toEntry = (row: DomainRow | null): Entry => {
    const at = clock.elapsed();
    if (row === null) return { at, tenantId: null, context: null, served: null };
    const { tenantId, domainId } = row;
    return { at, tenantId, context: contextOf(row), served: isServed(row.status) ? { tenantId, domainId, target: targetOf(row) } : null };
  };

  const read = async (hostname: string): Promise<Entry> => {
    const before = forgotten;
    const entry = toEntry(await findVerified(db, hostname));
    if (before === forgotten) (entry.tenantId === null ? unknown : known).set(hostname, entry);
    return entry;
  };

  /** The calls that come while a row is read share it. */
  const entryOf = (hostname: string): Entry | Promise<Entry> => {
    const now = clock.elapsed();
    const found = known.get(hostname) ?? unknown.get(hostname);
    if (found !== undefined && now - found.at < (found.tenantId === null ? UNKNOWN_MS : KNOWN_MS)) return found;
    const waiting = pending.get(hostname);
    if (waiting !== undefined) return waiting;
    const reading: Promise<Entry> = read(hostname).finally(() => {
      if (pending.get(hostname) === reading) pending.delete(hostname);
    });
    pending.set(hostname, reading);
    return reading;
  };

  return {
    /** Null: the name is nobody's, or has no certificate. */
    certificateFor: async (serverName: string): Promise<SecureContext | null> => (HOSTNAME.test(serverName) ? (await entryOf(serverName)).context : null),
    /** Null: the name is nobody's, or is not served. */
    find: async (hostname: string): Promise<ServedDomain | null> => (HOSTNAME.test(hostname) ? (await entryOf(hostname)).served : null),
    /** Something of these tenants has changed. */
    forget: (tenantIds: Iterable<string>): void => {
      forgotten += 1;
      pending.clear();
      const changed = new Set(tenantIds);
      for (const [hostname, { tenantId }] of known.entries()) if (tenantId !== null && changed.has(tenantId)) known.delete(hostname);
      unknown.clear();
    },
    size: (): number => known.size,
  };
};
export type ServedDomains = ReturnType<typeof createServedDomains>;

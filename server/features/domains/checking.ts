// The verification of custom domains: looks at the DNS, and moves a domain from state to state by what it found there.
import { type CheckName, contract, type DomainCheck } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { type DurableEvent, type Happened, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import type { DnsChecks, DnsVerdict } from "./dns.ts";
import { checksOf, type DomainsEdge, txtNameOf, txtValueOf } from "./record.ts";
import { BORNE_MS, MISSES, waitMs } from "./schedule.ts";
import { type DomainStep, isOwned, moveDomain } from "./states.ts";
import { type DomainPatch, type DomainRow, findVerified, lockDomain, patchDomain, recheckOthers } from "./store.ts";

const { events } = contract.domains;

/** What the DNS says of a domain. */
export type Looked = Readonly<Record<"txt" | "cname" | "caa", DnsVerdict>>;

export interface CheckingDeps extends Pick<FeatureKit, "db" | "clock" | "emit"> {
  readonly dns: DnsChecks;
  readonly edge: () => DomainsEdge;
  /** The names of the certificate authority in CAA records; null: no certificate is ordered. */
  readonly issuers: () => Promise<readonly string[] | null>;
  /** Visitors may be served differently now. */
  readonly changed: (tenantId: string) => void;
}

export const DNS_MISMATCH = "DNS_MISMATCH";
export const CAA_FORBIDS = "CAA_FORBIDS";

export const NO_CERTIFICATE = {
  certSource: null,
  certChain: null,
  certKey: null,
  certIssuer: null,
  certNotBefore: null,
  certNotAfter: null,
  certWarnedAt: null,
  nextRenewalAt: null,
} satisfies DomainPatch;
export const NO_ORDER = { orderUrl: null, orderKey: null, challengeToken: null, challengeAnswer: null, leaseBy: null, leaseUntil: null } satisfies DomainPatch;

/** A domain that this transaction has locked, on its way through the states. */
interface Way {
  readonly tx: Tx;
  readonly scope: SystemScope;
  row: DomainRow;
  readonly told: Happened<DurableEvent>[];
}

const EVENT_OF: Readonly<Partial<Record<DomainStep, typeof events.verified | typeof events.active | typeof events.expired>>> = {
  verified: events.verified,
  served: events.active,
  timedOut: events.expired,
};

export const createChecking = ({ db, clock, emit, dns, edge, issuers, changed }: CheckingDeps) => {
  const look = async ({ hostname, token }: Pick<DomainRow, "hostname" | "token">): Promise<Looked> => {
    const { cnameTarget, addresses } = edge();
    const [txt, cname, caa] = await Promise.all([
      dns.txt({ name: txtNameOf(hostname), value: txtValueOf(token) }),
      dns.cname({ hostname, value: cnameTarget, addresses }),
      issuers().then((names) => dns.caa({ hostname, issuers: names ?? [] })),
    ]);
    return { txt, cname, caa };
  };

  /** Moves the domain in its transaction; its events follow with it. */
  const take = (way: Way, step: DomainStep, { failure = null, ...patch }: DomainPatch = {}): void => {
    const status = moveDomain(way.row.status as Parameters<typeof moveDomain>[0], step); // as: only this feature writes it
    way.row = { ...way.row, ...patch, status, failure, statusSince: clock.now(), checkCount: 0, misses: 0 } as DomainRow; // as: a patch of a row
    const { domainId, hostname } = way.row;
    const about = { domainId: domainId as `dom_${string}`, hostname }; // as: the column holds ids of domains
    const event = EVENT_OF[step];
    if (event !== undefined) way.told.push(happened(way.scope, event, domainId, about));
    if (step === "moved") way.told.push(happened(way.scope, events.degraded, domainId, { ...about, reason: failure ?? DNS_MISMATCH }));
    if (step === "lost") way.told.push(happened(way.scope, events.failed, domainId, { ...about, reason: failure ?? DNS_MISMATCH }));
  };

  const lose = (way: Way, failure: string): void => take(way, "lost", { failure, verifiedAt: null, ...NO_CERTIFICATE, ...NO_ORDER, orderError: null });

  const claim = async (way: Way, looked: Looked): Promise<void> => {
    const { row, tx } = way;
    const owner = await findVerified(tx, row.hostname);
    if (owner !== null && owner.domainId !== row.domainId) lose(way, "DOMAIN_TAKEN");
    else if (looked.txt.status === "pass") {
      take(way, "verified", { verifiedAt: clock.now() });
      await recheckOthers(tx, way.row, clock.now());
    } else if (looked.txt.status === "fail" && clock.now().getTime() - row.statusSince.getTime() >= BORNE_MS) take(way, "timedOut");
  };

  const leadsHere = async (way: Way, { cname, caa }: Looked): Promise<void> => {
    if (cname.status !== "pass") return;
    const mayOrder = (await issuers()) !== null;
    if (way.row.certNotAfter !== null || !mayOrder) take(way, "served");
    else if (caa.status === "pass" && way.row.status === "verified") take(way, "ordered");
  };

  /** Counts checks in a row that found a record gone. */
  const countMisses = (way: Way, verdicts: readonly DnsVerdict[]): void => {
    if (verdicts.some(({ status }) => status === "fail")) way.row = { ...way.row, misses: way.row.misses + 1 };
    else if (verdicts.every(({ status }) => status === "pass")) way.row = { ...way.row, misses: 0 };
  };

  const keep = (way: Way, { txt, cname }: Looked): void => {
    const { status } = way.row;
    if (status === "verified" || status === "issuing_certificate") {
      countMisses(way, [txt]);
      if (way.row.misses >= MISSES) lose(way, DNS_MISMATCH);
      return;
    }
    countMisses(way, [txt, cname]);
    const isWell = txt.status === "pass" && cname.status === "pass";
    const isMissing = txt.status === "fail" || cname.status === "fail";
    if (status === "active" && way.row.misses >= MISSES) take(way, "moved", { failure: DNS_MISMATCH });
    else if (status === "degraded" && isWell) take(way, "served");
    else if (status === "degraded" && isMissing && clock.now().getTime() - way.row.statusSince.getTime() >= BORNE_MS) lose(way, DNS_MISMATCH);
  };

  const withVerdicts = (row: DomainRow, looked: Looked): Record<CheckName, DomainCheck> => {
    const at = clock.now().toISOString();
    const fresh = Object.entries(looked).map(([name, verdict]) => [name, { ...verdict, found: [...verdict.found], at }]);
    return { ...checksOf(row), ...Object.fromEntries(fresh) };
  };

  const save = async ({ tx, scope, row, told }: Way): Promise<DomainRow | null> => {
    const { domainId, tenantId: _tenant, hostname: _name, version: _version, createdAt: _made, updatedAt: _changed, status, ...rest } = row;
    const isNew = told.length > 0 || status === "issuing_certificate";
    const saved = await patchDomain(tx, scope, domainId, isNew ? { ...rest, status } : rest);
    await emit(tx, told);
    return saved;
  };

  /** Writes down what was found, and what follows. Null: the domain is gone. */
  const apply = async (tx: Tx, scope: SystemScope, domainId: string, looked: Looked): Promise<DomainRow | null> => {
    const locked = await lockDomain(tx, scope, domainId);
    if (locked === null) return null;
    const way: Way = { tx, scope, row: { ...locked, checks: withVerdicts(locked, looked) }, told: [] };
    if (way.row.status === "pending_verification") await claim(way, looked);
    else if (isOwned(way.row.status)) keep(way, looked);
    if (way.row.status === "verified" || way.row.status === "issuing_certificate") await leadsHere(way, looked);
    const isRight = [looked.txt, looked.cname, looked.caa].every(({ status }) => status === "pass");
    // An order that waited for this need not wait any longer.
    if (isRight && (way.row.orderError === DNS_MISMATCH || way.row.orderError === CAA_FORBIDS))
      way.row = { ...way.row, orderError: null, orderNotBefore: null };
    const checkCount = way.told.length > 0 ? 0 : way.row.checkCount + 1;
    const wait = waitMs({ ...way.row, checkCount });
    const now = clock.now();
    way.row = { ...way.row, checkCount, lastCheckedAt: now, nextCheckAt: wait === null ? null : new Date(now.getTime() + wait) };
    return save(way);
  };

  /** Looks and writes down, for a job. */
  const check = async (scope: SystemScope, row: DomainRow): Promise<DomainRow | null> => {
    const looked = await look(row);
    const saved = await db.tx((tx) => apply(tx, scope, row.domainId, looked));
    changed(scope.tenantId);
    return saved;
  };

  /** A failed or expired domain is claimed anew. */
  const restart = async (tx: Tx, scope: SystemScope, domainId: string): Promise<DomainRow | null> => {
    const row = await lockDomain(tx, scope, domainId);
    if (row === null || (row.status !== "failed" && row.status !== "expired")) return row;
    const way: Way = { tx, scope, row, told: [] };
    take(way, "restarted");
    const { status, statusSince, failure, checkCount, misses } = way.row;
    return patchDomain(tx, scope, domainId, { status, statusSince, failure, checkCount, misses, nextCheckAt: clock.now() });
  };

  return { look, apply, check, restart };
};
export type Checking = ReturnType<typeof createChecking>;

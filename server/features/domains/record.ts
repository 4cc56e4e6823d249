// A custom domain as its callers see it.
import type { CheckName, CustomDomain, DomainCheck, DomainChecks, DomainDns } from "../../../protocol/index.ts";
import { CHECK_NAMES, CustomDomain as CustomDomainRecord } from "../../../protocol/index.ts";
import { recordOf } from "../../core/rows/records.ts";
import { displayNameOf } from "./hostname.ts";
import { BORNE_MS } from "./schedule.ts";
import type { DomainRow } from "./store.ts";

/** What the installation tells owners of domains to set. */
export interface DomainsEdge {
  /** The name that a CNAME has to lead to. */
  readonly cnameTarget: string;
  /** For names where no CNAME can stand; empty: the installation names none. */
  readonly addresses: readonly string[];
}

export const EXPIRING_MS = 7 * 86_400_000;

export const txtNameOf = (hostname: string): string => `_svc-verify.${hostname}`;
export const txtValueOf = (token: string): string => `svc-domain-verification=${token}`;

const NOT_CHECKED: DomainCheck = { status: "unknown", expected: null, found: [], at: null, resolver: null };
export const checksOf = (row: Pick<DomainRow, "checks">): DomainChecks => {
  const stored = row.checks as Partial<Record<CheckName, DomainCheck>>; // as: written by this feature alone
  return Object.fromEntries(CHECK_NAMES.map((name) => [name, stored[name] ?? NOT_CHECKED])) as DomainChecks; // as: by these names
};

export const certificateStatusOf = (row: DomainRow, now: Date): CustomDomain["certificate"]["status"] => {
  if (row.certNotAfter !== null) return row.certNotAfter.getTime() - now.getTime() <= EXPIRING_MS ? "expiring" : "active";
  if (row.orderError !== null) return "failed";
  return row.status === "issuing_certificate" ? "pending" : "none";
};

const MISSING: Readonly<Record<Exclude<CheckName, "http">, (row: DomainRow, edge: DomainsEdge) => string>> = {
  txt: (row) => `Set the TXT record ${txtNameOf(row.hostname)} to ${txtValueOf(row.token)}.`,
  cname: (row, { cnameTarget }) => `Let ${row.hostname} lead to ${cnameTarget}, by a CNAME, an ALIAS or its addresses.`,
  caa: (row) => `The CAA records of ${row.hostname} do not allow the certificate authority of this installation.`,
};

const errorsOf = (row: DomainRow, edge: DomainsEdge): string[] => {
  const checks = checksOf(row);
  const missing = (["txt", "cname", "caa"] as const).flatMap((name) => {
    const { status, found } = checks[name];
    if (status === "pass") return [];
    if (status === "fail") return [MISSING[name](row, edge)];
    return found.map((reason) => `Nobody could tell: ${reason}.`);
  });
  return row.failure === "DOMAIN_TAKEN" ? ["Another tenant has verified this name.", ...missing] : missing;
};

const iso = (at: Date | null): string | null => at?.toISOString() ?? null;

export const createToRecord =
  (edge: () => DomainsEdge, now: () => Date) =>
  (row: DomainRow): CustomDomain => {
    const { hostname, token, verifiedAt } = row;
    return recordOf(CustomDomainRecord, {
      ...row,
      displayName: displayNameOf(hostname),
      target: row.targetKind === null || row.targetId === null ? null : { kind: row.targetKind, id: row.targetId },
      routingEndsAt: row.status === "degraded" ? new Date(row.statusSince.getTime() + BORNE_MS) : null,
      verification: { method: "TXT", name: txtNameOf(hostname), value: txtValueOf(token), verifiedAt: iso(verifiedAt) },
      dns: { recordType: "CNAME", name: hostname, value: edge().cnameTarget },
      certificate: {
        status: certificateStatusOf(row, now()),
        source: row.certSource,
        issuer: row.certIssuer,
        notBefore: iso(row.certNotBefore),
        notAfter: iso(row.certNotAfter),
        lastError: row.orderError,
        nextRenewalAt: iso(row.nextRenewalAt),
      },
      checks: checksOf(row),
      verificationErrors: errorsOf(row, edge()),
    });
  };

/** The records to set. Where no CNAME can stand, the addresses do. */
export const dnsOf = ({ domainId, hostname, token }: DomainRow, { cnameTarget, addresses }: DomainsEdge): DomainDns => ({
  domainId: domainId as DomainDns["domainId"],
  hostname,
  records: [
    { purpose: "ownership", required: true, recordType: "TXT", name: txtNameOf(hostname), value: txtValueOf(token) },
    { purpose: "routing", required: true, recordType: "CNAME", name: hostname, value: cnameTarget },
    ...addresses.map((value) => ({
      purpose: "routing" as const,
      required: false,
      recordType: value.includes(":") ? ("AAAA" as const) : ("A" as const),
      name: hostname,
      value,
    })),
  ],
});

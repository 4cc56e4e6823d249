// What follows from an order at the certificate authority, or from a certificate that somebody uploads: the domain serves visitors, or says why not.
import { contract, type DomainCheck } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { type DurableEvent, type Happened, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import { CAA_FORBIDS, type Checking, type CheckingDeps, DNS_MISMATCH, NO_ORDER } from "./checking.ts";
import type { CheckedPem } from "./pem.ts";
import { checksOf } from "./record.ts";
import { orderWaitMs, renewalAt } from "./schedule.ts";
import { type DomainPatch, type DomainRow, lockDomain, patchDomain } from "./store.ts";

const { events } = contract.domains;

export interface IssuingDeps extends Pick<CheckingDeps, "db" | "clock" | "emit" | "changed"> {
  readonly checking: Checking;
  readonly secretBox: SecretBox;
  readonly random: () => number;
}

interface Issued extends CheckedPem {
  readonly chain: string;
  readonly key: string;
  /** The authority. */
  readonly asked: string;
}
interface Refusal {
  readonly message: string;
  /** The order can go on later. */
  readonly isPassing: boolean;
  readonly retryAfterMs: number;
  readonly asked: string;
}

const HOUR_MS = 3_600_000;
/** No name server could tell. */
const SOON_MS = 300_000;
const aboutOf = ({ domainId, hostname }: DomainRow) => ({ domainId: domainId as `dom_${string}`, hostname }); // as: the column holds ids of domains

export const createIssuing = ({ db, clock, emit, changed, checking, secretBox, random }: IssuingDeps) => {
  const withHttpCheck = (row: DomainRow, asked: string, failure: string | null): NonNullable<DomainRow["checks"]> => {
    const http: DomainCheck = {
      status: failure === null ? "pass" : "fail",
      expected: `http://${row.hostname}/.well-known/acme-challenge/ leads here`,
      found: failure === null ? [] : [failure],
      at: clock.now().toISOString(),
      resolver: asked,
    };
    return { ...checksOf(row), http };
  };

  /** Takes a checked certificate into use. */
  const use = async (
    tx: Tx,
    scope: SystemScope,
    row: DomainRow,
    { source, pem, checks }: { readonly source: "acme" | "own"; readonly pem: Omit<Issued, "asked">; readonly checks?: NonNullable<DomainRow["checks"]> },
  ) => {
    const { tenantId, domainId } = row;
    const isWaiting = row.status === "issuing_certificate";
    const patch: DomainPatch = {
      ...NO_ORDER,
      orderNotBefore: null,
      orderFailures: 0,
      orderError: null,
      certSource: source,
      certChain: pem.chain,
      certKey: secretBox.seal(pem.key, `domain-certificate|${tenantId}|${domainId}`),
      certIssuer: pem.issuer,
      certNotBefore: pem.notBefore,
      certNotAfter: pem.notAfter,
      certWarnedAt: null,
      nextRenewalAt: source === "own" ? null : renewalAt(pem.notBefore, pem.notAfter, random()),
      ...(checks === undefined ? {} : { checks }),
      ...(isWaiting ? { status: "active", statusSince: clock.now(), failure: null, checkCount: 0, misses: 0 } : { status: row.status }),
    };
    const saved = await patchDomain(tx, scope, domainId, patch);
    const told: Happened<DurableEvent>[] = [happened(scope, events.certificateRenewed, domainId, { ...aboutOf(row), notAfter: pem.notAfter.toISOString() })];
    if (isWaiting) told.push(happened(scope, events.active, domainId, aboutOf(row)));
    await emit(tx, told);
    return saved;
  };

  return {
    use,
    /** Looks at the DNS again and writes it down. False: the authority would refuse, so the order waits. */
    mayOrder: async (scope: SystemScope, row: DomainRow): Promise<boolean> => {
      const looked = await checking.look(row);
      const passes = [looked.txt, looked.cname, looked.caa].every(({ status }) => status === "pass");
      await db.tx(async (tx) => {
        const saved = await checking.apply(tx, scope, row.domainId, looked);
        if (passes || saved === null || saved.leaseBy !== row.leaseBy) return;
        const isMissing = [looked.txt, looked.cname, looked.caa].some(({ status }) => status === "fail");
        const orderError = !isMissing ? saved.orderError : looked.caa.status === "fail" ? CAA_FORBIDS : DNS_MISMATCH;
        const orderNotBefore = new Date(clock.now().getTime() + (isMissing ? HOUR_MS : SOON_MS));
        // Nothing was ordered, so nothing counts.
        await patchDomain(tx, scope, row.domainId, { ...NO_ORDER, orderedAt: null, orderError, orderNotBefore });
      });
      return passes;
    },
    issued: async (scope: SystemScope, { domainId, leaseBy }: DomainRow, { asked, ...pem }: Issued): Promise<void> => {
      await db.tx(async (tx) => {
        const row = await lockDomain(tx, scope, domainId);
        if (row !== null && row.leaseBy === leaseBy) await use(tx, scope, row, { source: "acme", pem, checks: withHttpCheck(row, asked, null) });
      });
      changed(scope.tenantId);
    },
    refused: async (scope: SystemScope, { domainId, leaseBy }: DomainRow, { message, isPassing, retryAfterMs, asked }: Refusal): Promise<void> => {
      await db.tx(async (tx) => {
        const row = await lockDomain(tx, scope, domainId);
        if (row === null || row.leaseBy !== leaseBy) return;
        const orderFailures = row.orderFailures + 1;
        const orderNotBefore = new Date(clock.now().getTime() + orderWaitMs(orderFailures, retryAfterMs));
        const ended: DomainPatch = isPassing ? { leaseBy: null, leaseUntil: null } : { ...NO_ORDER, checks: withHttpCheck(row, asked, message) };
        await patchDomain(tx, scope, domainId, { ...ended, orderFailures, orderNotBefore, orderError: `ACME_REFUSED: ${message}` });
        await emit(tx, [happened(scope, events.certificateFailed, domainId, { ...aboutOf(row), reason: message })]);
      });
      changed(scope.tenantId);
    },
  };
};
export type Issuing = ReturnType<typeof createIssuing>;

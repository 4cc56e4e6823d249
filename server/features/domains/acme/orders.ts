// Orders certificates and renews them. Each step is written down before the next, so whoever goes on after a crash finishes the same order: the authority
// makes one certificate, however often a node is killed.
import type { Client, Order } from "acme-client";
import type { Clock } from "../../../core/clock.ts";
import { newId } from "../../../core/ids.ts";
import { becomeLeader } from "../../../core/leader-election.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { Job } from "../../../platform/jobs.ts";
import type { SecretBox } from "../../../platform/keys/secrets.ts";
import type { Issuing } from "../issuing.ts";
import { judgePem } from "../pem.ts";
import { type DomainPatch, type DomainRow, findDomain } from "../store.ts";
import { AcmeError, type Authority } from "./authority.ts";
import { claimOrders, countOrders, keepStep } from "./store.ts";

export interface CertificateOrdersDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly secretBox: SecretBox;
  readonly authority: Authority;
  readonly issuing: Issuing;
  readonly onError: (error: unknown) => void;
}

export const ORDERS_JOB = "domains.orders";
const EVERY_MS = 10_000;
const LEASE_MS = 120_000;
const HOUR_MS = 3_600_000;
/** Limits of the whole installation: authorities block those who order too much. */
const AT_ONCE = 10;
const PER_HOUR = 50;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 500).toWellFormed();

/** Somebody else has the lease now. */
class LeaseLost extends Error {
  override readonly name = "LeaseLost";
}
/** The order is over, and another one may work. */
class Refused extends Error {
  override readonly name = "Refused";
}

interface Work {
  readonly client: Client;
  readonly row: DomainRow;
  readonly signal: AbortSignal;
  readonly keep: (patch: Omit<DomainPatch, "checks">) => Promise<void>;
}

/** Null: the authority has forgotten or ended it. */
const resume = async (client: Client, url: string): Promise<Order | null> => {
  try {
    const order = await client.getOrder({ url } as Order); // as: it reads the URL alone
    return order.status === "invalid" ? null : order;
  } catch (error) {
    if (error instanceof AcmeError && !error.isPassing) return null;
    throw error;
  }
};

/** Shows the authority that the name leads here: it asks any node for the token by HTTP. */
const prove = async ({ client, keep, signal }: Work, order: Order): Promise<void> => {
  for (const authorization of await client.getAuthorizations(order)) {
    if (authorization.status === "valid") continue;
    const challenge = authorization.challenges.find(({ type }) => type === "http-01");
    if (challenge === undefined) throw new Refused("the certificate authority offers no http-01 challenge");
    await keep({ challengeToken: challenge.token, challengeAnswer: await client.getChallengeKeyAuthorization(challenge) });
    signal.throwIfAborted();
    if (challenge.status === "pending") await client.completeChallenge(challenge);
    await client.waitForValidStatus(challenge).catch((error: unknown) => {
      throw error instanceof AcmeError ? error : new Refused(messageOf(error));
    });
  }
};

export const createCertificateOrders = ({ db, clock, secretBox, authority, issuing, onError }: CertificateOrdersDeps): { readonly job: Job } => {
  const contextOf = ({ tenantId, domainId }: DomainRow) => `domain-order|${tenantId}|${domainId}` as const;

  const begin = async ({ client, row, keep }: Work): Promise<Order> => {
    const order = await client.createOrder({ identifiers: [{ type: "dns", value: row.hostname }] });
    await keep({ orderUrl: order.url, orderKey: null });
    return order;
  };

  /** The key is stored before the authority sees its request, so the certificate that it makes is never without one. */
  const keyOf = async ({ row, keep }: Work, isKnown: boolean): Promise<string> => {
    if (isKnown && row.orderKey !== null) return secretBox.open(row.orderKey, contextOf(row));
    const key = await authority.createKey();
    await keep({ orderKey: secretBox.seal(key, contextOf(row)) });
    return key;
  };

  const issue = async (work: Work): Promise<{ readonly chain: string; readonly key: string }> => {
    const { client, row, signal } = work;
    const known = row.orderUrl === null ? null : await resume(client, row.orderUrl);
    let order = known ?? (await begin(work));
    signal.throwIfAborted();
    if (order.status === "pending") {
      await prove(work, order);
      // What comes has no URL.
      order = { ...(await client.waitForValidStatus(order)), url: order.url };
    }
    signal.throwIfAborted();
    const key = await keyOf(work, known !== null);
    if (order.status === "ready") order = await client.finalizeOrder(order, await authority.createRequest(row.hostname, key));
    return { chain: await client.getCertificate(order), key };
  };

  const fail = async (scope: SystemScope, row: DomainRow, error: unknown): Promise<void> => {
    if (error instanceof LeaseLost) return;
    // An order that the authority has not ended goes on later, or there might be two certificates.
    const isPassing = error instanceof AcmeError ? error.isPassing : !(error instanceof Refused);
    const retryAfterMs = error instanceof AcmeError ? error.retryAfterMs : 0;
    await issuing.refused(scope, row, { message: messageOf(error), isPassing, retryAfterMs, asked: authority.host });
  };

  const work = async (claimed: { readonly tenantId: string; readonly domainId: string }, by: string, signal: AbortSignal): Promise<void> => {
    const scope = { tenantId: claimed.tenantId } as SystemScope; // as: read from a row
    const row = await findDomain(db, scope, claimed.domainId);
    if (row === null || row.leaseBy !== by) return;
    const keep: Work["keep"] = async (patch) => {
      const leaseUntil = new Date(clock.now().getTime() + LEASE_MS);
      if (!(await keepStep(db, { domainId: row.domainId, leaseBy: by }, { ...patch, leaseUntil }))) throw new LeaseLost();
    };
    try {
      // A look before a new order: what was right a day ago may be wrong now.
      if (row.orderUrl === null && !(await issuing.mayOrder(scope, row))) return;
      const { chain, key } = await authority.withClient((client) => issue({ client, row, signal, keep }));
      const judged = judgePem({ chain, key }, row.hostname, clock.now());
      if ("refusal" in judged) throw new Refused(`the certificate that came cannot be used: ${judged.refusal}`);
      await issuing.issued(scope, row, { chain, key, asked: authority.host, ...judged.checked });
    } catch (error) {
      // The node stops: whoever comes next goes on.
      if (signal.aborted) return;
      await fail(scope, row, error);
    }
  };

  const claim = (by: string): Promise<readonly { readonly tenantId: string; readonly domainId: string }[]> =>
    db.tx(async (tx) => {
      if (!(await becomeLeader(tx, "certificateOrders"))) return [];
      const now = clock.now();
      const { working, lately } = await countOrders(tx, { now, since: new Date(now.getTime() - HOUR_MS) });
      const claimed = { now, by, until: new Date(now.getTime() + LEASE_MS) };
      const free = Math.max(0, AT_ONCE - working);
      const begun = await claimOrders(tx, { ...claimed, limit: free, begun: true });
      const limit = Math.max(0, Math.min(free - begun.length, PER_HOUR - lately));
      return [...begun, ...(await claimOrders(tx, { ...claimed, limit, begun: false }))];
    });

  const run = async (signal: AbortSignal): Promise<boolean> => {
    const by = newId("nod");
    const claimed = await claim(by);
    await Promise.all(claimed.map((each) => work(each, by, signal).catch(onError)));
    return claimed.length > 0;
  };
  return { job: { name: ORDERS_JOB, everyMs: EVERY_MS, run } };
};

// Which custom domains need somebody: those that visitors do not reach, and those whose certificate ends soon.
import type { Attention, AttentionSource } from "../../core/people/attention.ts";
import type { FeatureKit } from "../kit.ts";
import { displayNameOf } from "./hostname.ts";
import { certificateStatusOf, EXPIRING_MS } from "./record.ts";
import { type DomainRow, findNeedyDomains } from "./store.ts";

const isOut = ({ status }: DomainRow): boolean => status === "failed" || status === "degraded";

const lineOf = (row: DomainRow, now: Date): Attention => {
  const { domainId: id, hostname, status, statusSince, failure, orderError, certNotAfter } = row;
  const name = displayNameOf(hostname);
  const common: Pick<Attention, "count" | "subject" | "names" | "action"> = {
    count: 1,
    subject: { kind: "domain", id, name },
    names: [name],
    action: { place: "domains", id, search: "" },
  };
  if (isOut(row)) {
    const params = { status, ...(failure === null ? {} : { reason: failure }) };
    return { ...common, kind: "domain_failed", tone: status === "failed" ? "bad" : "warn", since: statusSince, params };
  }
  const ends = certNotAfter === null ? {} : { endsAt: certNotAfter.toISOString() };
  const hasEnded = certNotAfter !== null && certNotAfter <= now;
  const error = orderError === null ? {} : { message: orderError };
  return {
    ...common,
    kind: "certificate_ending",
    tone: hasEnded ? "bad" : "warn",
    since: null,
    params: { ...ends, ...error, status: certificateStatusOf(row, now) },
  };
};

export const createDomainAttention = ({ db, clock }: Pick<FeatureKit, "db" | "clock">): AttentionSource => ({
  needs: "domain:read",
  find: async (scope, limit) => {
    const now = clock.now();
    const rows = await findNeedyDomains(db, scope, new Date(now.getTime() + EXPIRING_MS), limit);
    return rows.map((row) => lineOf(row, now));
  },
});

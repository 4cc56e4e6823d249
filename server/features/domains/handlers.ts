// The operations on custom domains.
import { randomBytes } from "node:crypto";
import { contract, type DomainTargetInput } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { withActor, withActors } from "../../core/people/actors.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import type { FeatureKit } from "../kit.ts";
import { type Checking, NO_CERTIFICATE, NO_ORDER } from "./checking.ts";
import { judgeHostname } from "./hostname.ts";
import type { Issuing } from "./issuing.ts";
import { fingerprintOf, judgePem } from "./pem.ts";
import { createToRecord, type DomainsEdge, dnsOf } from "./record.ts";
import { ASK_EVERY_MS } from "./schedule.ts";
import { isOwned } from "./states.ts";
import {
  changeDomain,
  type DomainRow,
  deleteDomain,
  findByHostname,
  findDomain,
  findVerified,
  insertDomain,
  lockDomain,
  pageOfDomains,
  patchDomain,
  takeAsk,
} from "./store.ts";

/** What a target stands for: a tunnel, or the device that could have one. */
export type TargetFound = { readonly tunnelId: string } | { readonly tunnelId: null; readonly deviceId: string | null };
export interface DomainTargets {
  /** Throws the 404 of its kind. */
  find(db: Clients, scope: SystemScope, target: NonNullable<DomainTargetInput>): Promise<TargetFound>;
}

export interface HandlersDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan"> {
  readonly secretBox: SecretBox;
  readonly checking: Checking;
  readonly issuing: Issuing;
  readonly targets: DomainTargets;
  readonly edge: () => DomainsEdge;
  /** Zones of this installation, where tenants have no names of their own. */
  readonly ownZones: () => readonly string[];
  /** Null: no certificate is ordered. */
  readonly orders: boolean;
  /** The edge ends TLS, so it can use certificates. */
  readonly servesTls: boolean;
  readonly changed: (tenantId: string) => void;
  readonly wakeOrders: () => void;
}

type DomainHandlers = Handlers<typeof contract.domains>;

const HOUR_MS = 3_600_000;
const TOKEN_BYTES = 16;
const { events } = contract.domains;

const unknown = (domainId: string): AppError => new AppError("DOMAIN_NOT_FOUND", { details: { domainId } });
const refusedState = (from: string, to: string, allowed: readonly string[]): AppError =>
  new AppError("INVALID_STATE_TRANSITION", { details: { from, to, allowed } });
const aboutOf = ({ domainId, hostname }: DomainRow) => ({ domainId: domainId as `dom_${string}`, hostname }); // as: the column holds ids of domains

const requireOne = async (db: Clients, scope: SystemScope, domainId: string): Promise<DomainRow> => {
  const row = await findDomain(db, scope, domainId);
  if (row === null) throw unknown(domainId);
  return row;
};
const requireLocked = async (tx: Tx, scope: SystemScope, domainId: string): Promise<DomainRow> => {
  const row = await lockDomain(tx, scope, domainId);
  if (row === null) throw unknown(domainId);
  return row;
};
const tooSoon = ({ domainId, askedAt }: DomainRow, now: Date): AppError => {
  const waited = now.getTime() - (askedAt ?? now).getTime();
  return new AppError("DOMAIN_CHECK_TOO_SOON", { details: { domainId }, retryAfter: Math.max(1, Math.ceil((ASK_EVERY_MS - waited) / 1_000)) });
};
const orUnknown = (row: DomainRow | null, domainId: string): DomainRow => {
  if (row === null) throw unknown(domainId);
  return row;
};

const createRequireTarget =
  (targets: DomainTargets) =>
  async (db: Clients, scope: SystemScope, target: DomainTargetInput): Promise<Pick<DomainRow, "targetKind" | "targetId">> => {
    if (target === null) return { targetKind: null, targetId: null };
    const found = await targets.find(db, scope, target);
    if (found.tunnelId === null) {
      const offer = found.deviceId === null ? null : { method: "POST", path: `/v1/devices/${found.deviceId}/tunnels`, body: { appId: target.id } };
      throw new AppError("DOMAIN_TARGET_INVALID", { details: { reason: "no_tunnel", target, offer } });
    }
    return { targetKind: target.kind, targetId: target.id };
  };

type Reads = Pick<DomainHandlers, "list" | "get" | "dns" | "certificate">;
const createReads = ({ db, clock, edge }: HandlersDeps): Reads => {
  const toRecord = createToRecord(edge, clock.now);
  return {
    list: async ({ scope }, query) => {
      const { items, ...page } = await pageOfDomains(db, scope, query, toRecord);
      return { items: await withActors(db, scope, items), ...page };
    },
    get: async ({ scope }, { domainId }) => withActor(db, scope, toRecord(await requireOne(db, scope, domainId))),
    dns: async ({ scope }, { domainId }) => dnsOf(await requireOne(db, scope, domainId), edge()),
    certificate: async ({ scope }, { domainId }) => {
      const { hostname, certChain: chain, certSource: source } = await requireOne(db, scope, domainId);
      if (chain === null) throw new AppError("CERTIFICATE_NOT_FOUND", { details: { domainId } });
      return { domainId: domainId as `dom_${string}`, hostname, source: source === "own" ? "own" : "acme", chain, fingerprint: fingerprintOf(chain) }; // as: a row has it
    },
  };
};

type Changes = Pick<DomainHandlers, "create" | "update" | "remove" | "verify">;
const createChanges = (deps: HandlersDeps): Changes => {
  const { db, clock, emit, plan, checking, targets, edge, ownZones, changed, wakeOrders } = deps;
  const toRecord = createToRecord(edge, clock.now);
  const requireTarget = createRequireTarget(targets);
  const nameOf = (given: string): string => {
    const judged = judgeHostname(given, ownZones());
    if ("refusal" in judged) throw new AppError("DOMAIN_INVALID", { details: { hostname: given.slice(0, 300).toWellFormed(), reason: judged.refusal } });
    return judged.hostname;
  };
  const requireFree = async (tx: Tx, scope: SystemScope, hostname: string): Promise<void> => {
    const own = await findByHostname(tx, scope, hostname);
    if (own !== null) throw new AppError("DOMAIN_TAKEN", { details: { hostname, domainId: own.domainId } });
    if ((await findVerified(tx, hostname)) !== null) throw new AppError("DOMAIN_TAKEN", { details: { hostname } });
  };
  return {
    create: async ({ scope, commit }, input) => {
      const hostname = nameOf(input.hostname);
      return commit(async (tx) => {
        await plan.require(tx, scope, "customDomains", 1);
        await requireFree(tx, scope, hostname);
        const target = await requireTarget(tx, scope, input.target);
        const now = clock.now();
        const first = { token: randomBytes(TOKEN_BYTES).toString("hex"), checks: {}, statusSince: now, nextCheckAt: new Date(now.getTime() + ASK_EVERY_MS) };
        const row = await insertDomain(tx, scope, { domainId: newId("dom"), hostname, ...target, ...first, createdBy: actorOf(scope.principal) });
        await emit(tx, [happened(scope, events.created, row.domainId, aboutOf(row))]);
        return toRecord(row);
      });
    },
    update: ({ scope, commit }, { domainId, target, version }) =>
      commit(async (tx, afterwards) => {
        const patch = target === undefined ? {} : await requireTarget(tx, scope, target);
        const row = await changeDomain(tx, scope, { domainId, version }, patch);
        afterwards(() => changed(scope.tenantId));
        if (row !== null) return toRecord(row);
        throw new AppError("VERSION_CONFLICT", { details: { currentVersion: (await requireOne(tx, scope, domainId)).version } });
      }),
    remove: ({ scope, commit }, { domainId }) =>
      commit(async (tx, afterwards) => {
        const row = await requireLocked(tx, scope, domainId);
        await deleteDomain(tx, scope, domainId);
        await emit(tx, [happened(scope, events.removed, domainId, aboutOf(row))]);
        afterwards(() => changed(scope.tenantId));
        return null;
      }),
    verify: async ({ scope, commit }, { domainId }) => {
      const row = await requireOne(db, scope, domainId);
      const now = clock.now();
      const before = new Date(now.getTime() - ASK_EVERY_MS);
      if (row.askedAt !== null && row.askedAt > before) throw tooSoon(row, now);
      const looked = await checking.look(row);
      return commit(async (tx, afterwards) => {
        if (!(await takeAsk(tx, scope, domainId, { now, before }))) throw tooSoon(await requireOne(tx, scope, domainId), now);
        const taken = await findVerified(tx, row.hostname);
        if (taken !== null && taken.domainId !== domainId && row.status !== "pending_verification")
          throw new AppError("DOMAIN_TAKEN", { details: { hostname: row.hostname } });
        await checking.restart(tx, scope, domainId);
        const checked = orUnknown(await checking.apply(tx, scope, domainId, looked), domainId);
        afterwards(() => {
          changed(scope.tenantId);
          wakeOrders();
        });
        return toRecord(checked);
      });
    },
  };
};

type Certificates = Pick<DomainHandlers, "putCertificate" | "removeCertificate" | "renewCertificate">;
const createCertificates = (deps: HandlersDeps): Certificates => {
  const { clock, issuing, edge, orders, servesTls, changed, wakeOrders } = deps;
  const toRecord = createToRecord(edge, clock.now);
  return {
    putCertificate: ({ scope, commit }, { domainId, certificate, privateKey }) =>
      commit(async (tx, afterwards) => {
        const row = await requireLocked(tx, scope, domainId);
        if (!servesTls) throw new AppError("CERTIFICATE_NOT_CONFIGURED", { details: { domainId } });
        if (!isOwned(row.status)) throw refusedState(row.status, "active", ["pending_verification"]);
        const judged = judgePem({ chain: certificate, key: privateKey }, row.hostname, clock.now());
        if ("refusal" in judged) throw new AppError("CERTIFICATE_INVALID", { details: { domainId, reason: judged.refusal } });
        const saved = await issuing.use(tx, scope, row, { source: "own", pem: { chain: certificate, key: privateKey, ...judged.checked } });
        afterwards(() => changed(scope.tenantId));
        return toRecord(orUnknown(saved, domainId));
      }),
    removeCertificate: ({ scope, commit }, { domainId }) =>
      commit(async (tx, afterwards) => {
        const row = await requireLocked(tx, scope, domainId);
        if (row.certSource !== "own") throw new AppError("CERTIFICATE_NOT_FOUND", { details: { domainId } });
        const saved = await patchDomain(tx, scope, domainId, { ...NO_CERTIFICATE, ...NO_ORDER, orderNotBefore: null, status: row.status });
        afterwards(() => {
          changed(scope.tenantId);
          wakeOrders();
        });
        return toRecord(orUnknown(saved, domainId));
      }),
    renewCertificate: ({ scope, commit }, { domainId }) =>
      commit(async (tx, afterwards) => {
        const row = await requireLocked(tx, scope, domainId);
        if (!orders) throw new AppError("CERTIFICATE_NOT_CONFIGURED", { details: { domainId } });
        if (row.status !== "active" && row.status !== "issuing_certificate") throw refusedState(row.status, "issuing_certificate", ["active"]);
        if (row.certSource === "own") throw refusedState("own", "acme", []);
        const now = clock.now();
        const waited = now.getTime() - (row.orderedAt?.getTime() ?? 0);
        if (waited < HOUR_MS) throw new AppError("CERTIFICATE_RATE_LIMITED", { details: { domainId }, retryAfter: Math.ceil((HOUR_MS - waited) / 1_000) });
        const saved = await patchDomain(tx, scope, domainId, { nextRenewalAt: now, orderNotBefore: null, status: row.status });
        afterwards(wakeOrders);
        return toRecord(orUnknown(saved, domainId));
      }),
  };
};

export const createDomainHandlers = (deps: HandlersDeps): DomainHandlers =>
  implement(contract.domains, { ...createReads(deps), ...createChanges(deps), ...createCertificates(deps) });

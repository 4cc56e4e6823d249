// Impersonations: an administrator of the installation acts in a member's name, with a token of its own, for an hour at most. The tenant reads of it in
// its audit log and by mail, and either side ends it.
import { contract, type Impersonation, type TenantId } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import { newSecret, secretHash } from "../../core/ids.ts";
import { requireRecentSignIn } from "../../core/people/recent-sign-in.ts";
import { userOf } from "../../core/people/user-of.ts";
import { IMPERSONATION_TOKEN, type ImpersonationLookup, type TenantLookup } from "../../core/ports/lookups.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import type { Members } from "../tenants/index.ts";
import {
  deleteEndedImpersonations,
  endImpersonation,
  findExpiredImpersonations,
  findImpersonation,
  findOpenImpersonation,
  insertImpersonation,
  pageOfImpersonations,
} from "./store.ts";

const EXPIRE_MS = 10_000;
const EXPIRED_AT_ONCE = 100;
const SWEEP_MS = 3_600_000;
const KEEP_ENDED_SECONDS = 400 * DAY_SECONDS;
const TOKEN = new RegExp(`^${IMPERSONATION_TOKEN}[\\w-]{43}$`);
const EXPIRED_BY = "system";
const { started, ended } = contract.impersonations.events;

export interface ImpersonationsDeps extends Pick<FeatureKit, "db" | "clock" | "emit"> {
  readonly tenants: Pick<TenantLookup, "find">;
  readonly members: Pick<Members, "find" | "owners">;
}

export interface ImpersonationsFeature extends Feature<typeof contract.impersonations> {
  readonly lookup: ImpersonationLookup;
  /** For who acts in it and has done enough. */
  readonly leave: (tx: Tx, scope: SystemScope, impersonationId: string, by: string) => Promise<void>;
}

const unknown = (impersonationId: string): AppError => new AppError("IMPERSONATION_NOT_FOUND", { details: { impersonationId } });
const toldOf = ({ tenantId: _, endedAt: _endedAt, endedBy: _endedBy, ...told }: Impersonation) => told;

export const createImpersonations = ({ db, clock, emit, tenants, members }: ImpersonationsDeps): ImpersonationsFeature => {
  const memberOf = async (tx: Tx, scope: SystemScope, userId: string | undefined): Promise<string> => {
    const [owner] = userId === undefined ? await members.owners(tx, scope) : [userId];
    if (owner === undefined || (await members.find(tx, scope, { userId: owner })) === null) throw new AppError("MEMBER_NOT_FOUND", { details: { userId } });
    return owner;
  };

  const end = async (tx: Tx, within: SystemScope | null, impersonationId: string, endedBy: string): Promise<Impersonation> => {
    const done = await endImpersonation(tx, within, { impersonationId, endedBy, endedAt: clock.now() });
    if (done !== null) {
      await emit(tx, [happened({ tenantId: done.tenantId }, ended, impersonationId, { ...toldOf(done), endedBy })]);
      return done;
    }
    // A second end changes nothing.
    const over = await findImpersonation(tx, within, impersonationId);
    if (over === null) throw unknown(impersonationId);
    return over;
  };

  /** Tells of the end of those whose time is over; from that moment on they have been refused. */
  const expire = async (): Promise<boolean> => {
    const over = await findExpiredImpersonations(db, clock.now(), EXPIRED_AT_ONCE);
    for (const { tenantId, impersonationId } of over) await db.tx((tx) => end(tx, { tenantId }, impersonationId, EXPIRED_BY));
    return over.length === EXPIRED_AT_ONCE;
  };

  return {
    lookup: {
      find: async (token) => (TOKEN.test(token) ? findOpenImpersonation(db, { hash: secretHash(token) }, clock.now()) : null),
      byId: (impersonationId) => findOpenImpersonation(db, { impersonationId }, clock.now()),
    },
    leave: async (tx, scope, impersonationId, by) => void (await end(tx, scope, impersonationId, by)),
    jobs: [
      { name: "impersonations.expire", everyMs: EXPIRE_MS, run: expire },
      { name: "impersonations.delete-ended", everyMs: SWEEP_MS, run: () => deleteEndedImpersonations(db, secondsFromNow(-KEEP_ENDED_SECONDS, clock.now())) },
    ],
    handlers: implement(contract.impersonations, {
      start: async ({ scope, fail, commit }, { tenantId, userId, reason, minutes, readOnly }) => {
        const admin = userOf(scope);
        requireRecentSignIn(admin, clock);
        const tenant = await tenants.find(tenantId);
        if (tenant === null || tenant.status === "deleted") throw fail("TENANT_NOT_FOUND", { tenantId });
        const within: SystemScope = { tenantId: tenantId as TenantId }; // as: there is a tenant with this id
        const token = `${IMPERSONATION_TOKEN}${newSecret()}`;
        return commit(async (tx) => {
          const member = await memberOf(tx, within, userId);
          const startedAt = clock.now();
          const made = await insertImpersonation(tx, within, {
            hash: secretHash(token),
            userId: member,
            adminId: admin.userId,
            reason,
            readOnly,
            startedAt,
            expiresAt: secondsFromNow(60 * minutes, startedAt),
          });
          await emit(tx, [happened(within, started, made.impersonationId, toldOf(made))]);
          return { ...made, token };
        });
      },
      listAll: (_call, query) => pageOfImpersonations(db, null, query),
      list: ({ scope }, query) => pageOfImpersonations(db, scope, query),
      get: async (_call, { impersonationId }) => {
        const found = await findImpersonation(db, null, impersonationId);
        if (found === null) throw unknown(impersonationId);
        return found;
      },
      endAny: ({ scope, commit }, { impersonationId }) => commit((tx) => end(tx, null, impersonationId, actorOf(scope.principal))),
      end: ({ scope, commit }, { impersonationId }) => commit((tx) => end(tx, scope, impersonationId, actorOf(scope.principal))),
    }),
  };
};

// Blocks callers, and keeps this node's memory of them fresh: a hint brings a change at once, and a look every second finds it when the hint is lost.
import { type BlockedEntity, type BlockedType, contract, type TenantId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { Afterwards } from "../../core/feature.ts";
import { canonicalNetwork, networkTest, parseAddress } from "../../core/people/addresses.ts";
import type { AuditTrail } from "../../core/ports/audit.ts";
import type { PubSub } from "../../core/ports/pub-sub.ts";
import { INSTALLATION } from "../../core/ports/security.ts";
import { actorOf, type OpenScope, type SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Members } from "../tenants/index.ts";
import {
  blockedUsers,
  blocksVersion,
  countBlocked,
  deleteBlock,
  findBlock,
  findExpired,
  insertBlock,
  loadBlocks,
  lockBlocks,
  type NewBlock,
} from "./block-rows.ts";
import type { BlockedSet } from "./blocked-set.ts";
import type { Ranks } from "./ranks.ts";

export interface BlocksDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly audit: AuditTrail;
  readonly bus: PubSub;
  readonly set: BlockedSet;
  readonly members: Pick<Members, "owners">;
  readonly ranks: Ranks;
  readonly onError: (error: unknown) => void;
}

export const installationScope = (scope: Partial<OpenScope>): SystemScope => ({ ...scope, tenantId: INSTALLATION });

const CHANNEL = "blocks";
const MAX_BLOCKED = 1_000;
const MAX_YEARS_MS = 10 * 366 * 86_400_000;
/** Below a second, so that a block is in force within two even if the hint is lost. */
const LOOK_EVERY_MS = 700;
const EXPIRE_EVERY_MS = 2_000;
const BATCH = 100;

interface Wanted {
  readonly entityType: BlockedType;
  readonly entityValue: string;
  readonly reason: string | null;
  readonly expiresAt: string | null;
}

const invalid = (path: string, message: string): AppError => new AppError("VALIDATION_FAILED", { details: { issues: [{ path, code: "custom", message }] } });
const notSelf = (reason: string): AppError => new AppError("CANNOT_BLOCK_SELF", { details: { reason } });

const toBlock = ({ entityType, entityValue, reason, expiresAt }: Wanted, scope: OpenScope, now: Date): NewBlock => {
  const value = entityType === "ip" ? canonicalNetwork(entityValue) : entityValue;
  if (value === null) throw invalid("entityValue", "must be an address, or a network from /8 (IPv4) or /16 (IPv6) on");
  const end = expiresAt === null ? null : new Date(expiresAt);
  const leftMs = end === null ? 1 : end.getTime() - now.getTime();
  if (!(leftMs > 0 && leftMs < MAX_YEARS_MS)) throw invalid("expiresAt", "must be in the future, within ten years");
  return { entityType, entityValue: value, reason, createdBy: actorOf(scope.principal), expiresAt: end };
};

const isSelf = ({ entityType, entityValue }: NewBlock, { principal, ip }: OpenScope): boolean => {
  if (entityType === "user") return principal?.kind === "user" && principal.userId === entityValue;
  if (entityType === "key") return principal?.kind === "apiKey" && principal.keyId === entityValue;
  if (entityType === "device") return false;
  const own = parseAddress(ip);
  return own !== null && (entityValue.includes("/") ? networkTest(entityValue)(own) : entityValue === own.toString());
};

const toEvent = ({ id, entityType, entityValue }: BlockedEntity) => ({ blockedEntityId: id, entityType, entityValue });

export const createBlocks = ({ db, clock, emit, audit, bus, set, members, ranks, onError }: BlocksDeps) => {
  const { blocked, unblocked } = contract.security.events;
  let known = 0;
  const refresh = async (): Promise<void> => {
    const version = await blocksVersion(db);
    if (version === known) return;
    set.replace(await loadBlocks(db));
    known = version;
  };
  /** After the commit: this node at once, the others by a hint. */
  const spread = (): void => {
    void refresh().catch(onError);
    void bus.publish(CHANNEL, {}).catch(onError);
  };

  /** Nobody blocks somebody who may do more, and somebody must be left who can undo it. */
  const checkTarget = async (tx: Tx, scope: SystemScope, block: NewBlock): Promise<void> => {
    await ranks.check(tx, scope, block);
    const { entityType, entityValue } = block;
    if (entityType !== "user" || scope.tenantId === INSTALLATION) return;
    const owners = await members.owners(tx, scope);
    const refused = await blockedUsers(tx, scope, clock.now());
    if (owners.includes(entityValue) && owners.every((userId) => userId === entityValue || refused.has(userId))) throw notSelf("last_owner");
  };

  const write = async (tx: Tx, scope: SystemScope, block: NewBlock): Promise<BlockedEntity | null> => {
    const made = await insertBlock(tx, scope, block, clock.now());
    if (made !== null && scope.tenantId !== INSTALLATION)
      await emit(tx, [happened(scope, blocked, made.id, { ...toEvent(made), reason: made.reason, expiresAt: made.expiresAt })]);
    return made;
  };

  const remove = async (tx: Tx, scope: SystemScope, at: { readonly id: string; readonly cause: "person" | "expired" }): Promise<BlockedEntity | null> => {
    const gone = await deleteBlock(tx, scope, at.id);
    if (gone !== null && scope.tenantId !== INSTALLATION) await emit(tx, [happened(scope, unblocked, gone.id, { ...toEvent(gone), cause: at.cause })]);
    return gone;
  };

  const expireOne = (tenantId: string, id: string): Promise<void> =>
    db.tx(async (tx) => {
      audit.begin(tx);
      const scope = { tenantId: tenantId as TenantId }; // as: from the row
      const gone = await remove(tx, scope, { id, cause: "expired" });
      const entry = { actor: { type: "operator", id: "security.expire", email: null }, action: "security.expire", code: null, call: null } as const;
      if (gone !== null) await audit.append(tx, { ...entry, tenantId, resource: { type: "blocked-entities", id } });
    });

  const jobs: readonly Job[] = [
    { name: "security.blocks", everyMs: LOOK_EVERY_MS, run: refresh },
    {
      name: "security.expire",
      everyMs: EXPIRE_EVERY_MS,
      run: async () => {
        const expired = await findExpired(db, clock.now(), BATCH);
        for (const { tenantId, blockedEntityId } of expired) await expireOne(tenantId, blockedEntityId);
        return expired.length === BATCH;
      },
    },
  ];

  return {
    jobs,
    /** Reads what is blocked and listens for changes. Returns a function that stops it. */
    open: async (): Promise<() => Promise<void>> => {
      await refresh();
      return bus.subscribe(CHANNEL, () => void refresh().catch(onError));
    },
    /** By a person or a key. `owned` is the tenant, or the installation. */
    block: async (tx: Tx, owned: SystemScope, { caller, wanted, afterwards }: { caller: OpenScope; wanted: Wanted; afterwards: Afterwards }) => {
      const block = toBlock(wanted, caller, clock.now());
      if (isSelf(block, caller)) throw notSelf("self");
      await lockBlocks(tx, owned);
      await checkTarget(tx, owned, block);
      if ((await countBlocked(tx, owned, clock.now())) >= MAX_BLOCKED) throw new AppError("SECURITY_LIMIT_REACHED", { details: { limit: MAX_BLOCKED } });
      const made = await write(tx, owned, block);
      if (made === null) throw new AppError("ENTITY_ALREADY_BLOCKED", { details: { entityType: block.entityType, entityValue: block.entityValue } });
      afterwards(spread);
      return made;
    },
    unblock: async (tx: Tx, owned: SystemScope, { id, afterwards }: { id: string; afterwards: Afterwards }): Promise<null> => {
      const block = await findBlock(tx, owned, id);
      if (block !== null) {
        await ranks.check(tx, owned, block);
        await ranks.checkActor(tx, owned, block.createdBy);
      }
      if ((await remove(tx, owned, { id, cause: "person" })) === null) throw new AppError("BLOCKED_ENTITY_NOT_FOUND", { details: { blockedEntityId: id } });
      afterwards(spread);
      return null;
    },
    /** By a rule: never an owner, and never more than the limit. False when nothing changed. */
    blockByRule: async (tx: Tx, scope: SystemScope, block: NewBlock): Promise<boolean> => {
      await lockBlocks(tx, scope);
      if ((await countBlocked(tx, scope, clock.now())) >= MAX_BLOCKED) return false;
      const isOwner = block.entityType === "user" && (await members.owners(tx, scope)).includes(block.entityValue);
      return !isOwner && (await write(tx, scope, block)) !== null;
    },
    spread,
  };
};
export type BlockBook = ReturnType<typeof createBlocks>;

// Bulkheads: each class of work has places of its own, one for each database session that it may hold, and a tenant takes at most a share of a class.
// So whoever fills one class leaves the others alone, and a tenant that asks for too much is the only one that is refused.
import { WORK_CLASSES, type Work, type WorkClass } from "../../core/work.ts";
import { noSession, TenantShare } from "./db-errors.ts";

export interface Bulkheads {
  readonly sizes: Readonly<Record<WorkClass, number>>;
  /** The share of a class that one tenant may hold. */
  readonly tenantPercent: number;
}

export interface ClassFigures {
  readonly taken: number;
  readonly waiting: number;
  /** Refused, since the node started, because their tenant had its share. */
  readonly refused: number;
}

/** Hands out one place; the returned function gives it back. */
export type Enter = (work: Work) => Promise<() => void>;

/** How long work without a budget waits for a place: as long as for a new session. */
export const PLACE_TIMEOUT_MS = 5_000;
/** A tenant beyond its share soon learns so: its own calls hold what it waits for. */
const SHARE_TIMEOUT_MS = 2_000;
const MAX_WAITING = 2_000;
/** Per tenant and class, where a tenant has a share. */
const MAX_WAITING_OF_TENANT = 100;

interface Waiting {
  readonly tenantId: string | null;
  readonly admit: () => void;
}

const createBulkhead = (workClass: WorkClass, size: number, share: number) => {
  const maxWaitingOfTenant = share === Number.POSITIVE_INFINITY ? MAX_WAITING : MAX_WAITING_OF_TENANT;
  let taken = 0;
  let refused = 0;
  const held = new Map<string, number>();
  const queued = new Map<string, number>();
  const waiting = new Set<Waiting>();

  const count = (counts: Map<string, number>, tenantId: string | null, by: 1 | -1): void => {
    if (tenantId === null) return;
    const now = (counts.get(tenantId) ?? 0) + by;
    if (now === 0) counts.delete(tenantId);
    else counts.set(tenantId, now);
  };
  const hasShare = (tenantId: string | null): boolean => tenantId !== null && (held.get(tenantId) ?? 0) >= share;

  const take = (tenantId: string | null): (() => void) => {
    taken += 1;
    count(held, tenantId, 1);
    return () => {
      taken -= 1;
      count(held, tenantId, -1);
      for (const each of waiting) {
        if (taken >= size) return;
        if (!hasShare(each.tenantId)) each.admit();
      }
    };
  };

  const refusal = (tenantId: string | null): Error => {
    if (!hasShare(tenantId)) return noSession();
    refused += 1;
    return new TenantShare(workClass, share);
  };

  const enter: Enter = async (work) => {
    const { tenantId } = work;
    const mayEnter = !hasShare(tenantId);
    if (mayEnter && taken < size) return take(tenantId);
    const queuedOfTenant = tenantId === null ? 0 : (queued.get(tenantId) ?? 0);
    if (waiting.size >= MAX_WAITING || queuedOfTenant >= maxWaitingOfTenant) throw refusal(tenantId);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        waiting.delete(each);
        count(queued, tenantId, -1);
      };
      const each: Waiting = {
        tenantId,
        admit: () => {
          leave();
          resolve(take(tenantId));
        },
      };
      const giveUp = (): void => {
        leave();
        reject(refusal(tenantId));
      };
      const timer = setTimeout(giveUp, Math.max(0, Math.min(mayEnter ? PLACE_TIMEOUT_MS : SHARE_TIMEOUT_MS, work.leftMs())));
      count(queued, tenantId, 1);
      waiting.add(each);
    });
  };
  return { enter, figures: (): ClassFigures => ({ taken, waiting: waiting.size, refused }) };
};

export const createBulkheads = ({ sizes, tenantPercent }: Bulkheads) => {
  const one = (workClass: WorkClass) => {
    const size = sizes[workClass];
    // At 100 % a tenant waits for a place like everybody, and is never told of a share.
    return createBulkhead(workClass, size, tenantPercent === 100 ? Number.POSITIVE_INFINITY : Math.max(1, Math.ceil((size * tenantPercent) / 100)));
  };
  const each = Object.fromEntries(WORK_CLASSES.map((workClass) => [workClass, one(workClass)])) as Record<WorkClass, ReturnType<typeof one>>; // as: of every class
  const enter: Enter = (work) => each[work.workClass].enter(work);
  return { enter, figures: () => WORK_CLASSES.map((workClass) => [workClass, each[workClass].figures()] as const) };
};

/** For what is no gateway, such as a tool or a test: all work shares all sessions. */
export const createOneBulkhead = (size: number): ReturnType<typeof createBulkheads> => {
  const { enter, figures } = createBulkhead("jobs", size, size);
  return { enter, figures: () => [["jobs", figures()]] };
};

const PERCENT: Readonly<Record<WorkClass, number>> = { agents: 30, writes: 30, lists: 20, jobs: 20 };

/** Divides the sessions of a node; what was set counts as it is, and no class is without a session. */
export const divided = (poolSize: number, given: Partial<Readonly<Record<WorkClass, number | undefined>>> = {}): Bulkheads["sizes"] => {
  const exact = WORK_CLASSES.map((workClass) => ({ workClass, part: (poolSize * PERCENT[workClass]) / 100 }));
  const sizes = Object.fromEntries(exact.map(({ workClass, part }) => [workClass, Math.max(1, Math.floor(part))])) as Record<WorkClass, number>; // as: of every class
  const left = poolSize - Object.values(sizes).reduce((sum, size) => sum + size, 0);
  const neediest = [...exact].sort((a, b) => (b.part % 1) - (a.part % 1)).slice(0, Math.max(0, left));
  for (const { workClass } of neediest) sizes[workClass] += 1;
  for (const workClass of WORK_CLASSES) sizes[workClass] = given[workClass] ?? sizes[workClass];
  return sizes;
};

/** The settings of a node that divide its sessions. */
type BulkheadSettings = Readonly<Record<"DATABASE_POOL" | "DATABASE_TENANT_PERCENT", number>> &
  Readonly<Partial<Record<`DATABASE_SESSIONS_${Uppercase<WorkClass>}`, number | undefined>>>;

export const bulkheadsOf = (config: BulkheadSettings): Bulkheads => ({
  sizes: divided(config.DATABASE_POOL, {
    agents: config.DATABASE_SESSIONS_AGENTS,
    writes: config.DATABASE_SESSIONS_WRITES,
    lists: config.DATABASE_SESSIONS_LISTS,
    jobs: config.DATABASE_SESSIONS_JOBS,
  }),
  tenantPercent: config.DATABASE_TENANT_PERCENT,
});

// Whose work runs: its class and its tenant decide which database sessions it may take, its budget how long it may wait for the database.
// It travels with the work itself, across every await, so no store and no feature has to pass it on and none can forget it.
import { AsyncLocalStorage } from "node:async_hooks";
import type { Operation } from "../../protocol/index.ts";

/** `agents`: their hot path; `writes`: what people change; `lists`: what people read, and exports; `jobs`: background work. */
export const WORK_CLASSES = ["agents", "writes", "lists", "jobs"] as const;
export type WorkClass = (typeof WORK_CLASSES)[number];

/** A call ends within 8 s of its arrival, however the database fares. The rest is for the answer and for the last statement to be told. */
export const CALL_BUDGET_MS = 7_500;

export class Work {
  workClass: WorkClass;
  /** Null while the tenant is not known, and for what concerns several tenants. */
  tenantId: string | null = null;
  #budgetMs: number;
  #pending = 0;
  #since = 0;

  constructor(workClass: WorkClass, budgetMs = Number.POSITIVE_INFINITY) {
    this.workClass = workClass;
    this.#budgetMs = budgetMs;
  }

  /** Background work is not: its statements have their own limits. */
  get isBounded(): boolean {
    return this.#budgetMs !== Number.POSITIVE_INFINITY;
  }

  /** How much longer it may wait for the database. Only the time in which it waits counts: a long poll or a slow webhook uses none up. */
  leftMs(): number {
    return this.#pending === 0 ? this.#budgetMs : this.#budgetMs - (performance.now() - this.#since);
  }

  /** Counts the time until the work settles. What runs side by side counts once. */
  waits<T>(work: Promise<T>): Promise<T> {
    if (!this.isBounded) return work;
    if (this.#pending === 0) this.#since = performance.now();
    this.#pending += 1;
    return work.finally(() => {
      this.#pending -= 1;
      if (this.#pending === 0) this.#budgetMs -= performance.now() - this.#since;
    });
  }

  /** The call has its answer. What it left running goes on as background work. */
  end(): void {
    this.workClass = "jobs";
    this.tenantId = null;
    this.#budgetMs = Number.POSITIVE_INFINITY;
  }
}

const BACKGROUND = new Work("jobs");
const storage = new AsyncLocalStorage<Work>();

/** Work that nobody has named is background work. */
export const currentWork = (): Work => storage.getStore() ?? BACKGROUND;

export const isNamed = (work: Work): boolean => work !== BACKGROUND;

/** Runs this, and all that it starts, as this work. */
export const runAs = <T>(work: Work, run: () => T): T => storage.run(work, run);

const isPieces = (result: unknown): result is AsyncIterable<unknown> => typeof result === "object" && result !== null && Symbol.asyncIterator in result;

/** An export, or a stream: its pieces are made after the call, in the call's class of work, without its time limit. Any other result stays as it is. */
export const keepingClass = (result: unknown): unknown => {
  if (!isPieces(result)) return result;
  const { workClass, tenantId } = currentWork();
  const work = new Work(workClass);
  work.tenantId = tenantId;
  const pieces: AsyncIterable<unknown> = {
    [Symbol.asyncIterator]: () => {
      const iterator = runAs(work, () => result[Symbol.asyncIterator]());
      return {
        next: () => runAs(work, () => iterator.next()),
        return: async (value) => runAs(work, () => iterator.return?.(value) ?? { done: true, value }),
      };
    },
  };
  return pieces;
};

/** The same for all methods of an object: whoever calls them, they run as this work. */
export const methodsAs = <T extends object>(work: Work, methods: T): T => {
  const bound = Object.entries(methods).map(([name, value]: [string, unknown]) => [
    name,
    typeof value === "function" ? (...args: readonly unknown[]): unknown => runAs(work, () => Reflect.apply(value, methods, args)) : value,
  ]);
  return Object.fromEntries(bound) as T; // as: the same names with the same types
};

/** By the contract, so that every operation has a class. */
export const classOf = ({ kind, auth }: Pick<Operation, "kind" | "auth">, byAgent: boolean): WorkClass => {
  if (byAgent || auth.every((each) => each === "agent")) return "agents";
  return kind === "mutation" ? "writes" : "lists";
};

// Finds the addresses of a name: in the DNS first, and then as this machine does, which also knows /etc/hosts and search domains.
import { Resolver, type lookup as systemLookup } from "node:dns/promises";
import { OutboundError } from "../../core/ports/outbound.ts";

export interface NamesDeps {
  /** One for each name, so that giving one up ends no other. Null asks the system only. */
  readonly newResolver: (() => Pick<Resolver, "resolve4" | "resolve6" | "cancel">) | null;
  /** getaddrinfo; null asks the DNS only. */
  readonly systemLookup: typeof systemLookup | null;
}

export type FindAddresses = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

// Three seconds in all: within the five of a connection.
const DNS = { timeout: 1_000, tries: 2 };
export const newDnsResolver = (): Resolver => new Resolver(DNS);

/** getaddrinfo occupies one of the four threads that files and cryptography also need, for as long as a silent name server pleases. */
const SYSTEM_LOOKUPS = 2;

const untilAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    if (signal.aborted) abort();
  });

/** Looks names up one after the other on few threads; those who ask for the same name share the answer. */
const createSystemNames = (lookup: typeof systemLookup) => {
  const pending = new Map<string, Promise<readonly string[]>>();
  const lanes: Promise<unknown>[] = Array.from({ length: SYSTEM_LOOKUPS }, () => Promise.resolve());
  let turn = 0;
  const start = (name: string): Promise<readonly string[]> => {
    const lane = turn++ % SYSTEM_LOOKUPS;
    const found = (lanes[lane] ?? Promise.resolve())
      .then(() => lookup(name, { all: true }))
      .then((all) => all.map(({ address }) => address))
      .finally(() => pending.delete(name));
    lanes[lane] = found.catch(() => undefined);
    pending.set(name, found);
    return found;
  };
  return (name: string): Promise<readonly string[]> => pending.get(name) ?? start(name);
};

const codeOf = (reason: unknown): string => (reason as { code?: unknown }).code?.toString() ?? "unknown";
const unknownName = (name: string, cause?: unknown): OutboundError =>
  new OutboundError("DNS", `the name ${name} cannot be resolved: ${cause === undefined ? "no address" : codeOf(cause)}`, { cause });

/** The reason of the first failure, and whether one of them was silence. */
const failuresOf = (answers: readonly PromiseSettledResult<unknown>[]) => {
  const reasons = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason as unknown] : []));
  return { first: reasons[0], isSilent: reasons.some((reason) => codeOf(reason) === "ETIMEOUT") };
};

/**
 * The DNS alone decides for the names that it knows, and for those whose servers are silent: strangers choose these names, and waiting for them
 * costs no thread. Only names that the DNS denies go to the system, which knows those of the operator.
 */
export const createFindAddresses = ({ newResolver, systemLookup }: NamesDeps): FindAddresses => {
  const systemNames = systemLookup === null ? null : createSystemNames(systemLookup);
  const askSystem = (name: string, signal: AbortSignal, lookUp: (name: string) => Promise<readonly string[]>) =>
    untilAborted(lookUp(name), signal).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw unknownName(name, cause);
    });
  return async (name, signal) => {
    if (newResolver === null) return systemNames === null ? [] : askSystem(name, signal, systemNames);
    const resolver = newResolver();
    const cancel = (): void => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    signal.removeEventListener("abort", cancel);
    signal.throwIfAborted();
    const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    if (found.length > 0) return found;
    const { first, isSilent } = failuresOf(answers);
    if (systemNames === null || isSilent) throw unknownName(name, first);
    return askSystem(name, signal, systemNames);
  };
};

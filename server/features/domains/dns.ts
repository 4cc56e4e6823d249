// Looks up what the owner of a custom domain has set in the DNS: the TXT record that proves ownership, the CNAME that leads here, and CAA (RFC 8659).
import { Resolver } from "node:dns/promises";
import type { DomainCheck } from "../../../protocol/index.ts";

export type DnsVerdict = Pick<DomainCheck, "status" | "expected" | "found" | "resolver">;

export type DnsQueries = Pick<Resolver, "resolveTxt" | "resolveCname" | "resolveCaa" | "resolve4" | "resolve6">;

export interface DnsDeps {
  /** Addresses of name servers, each of which is asked; empty asks those of the system. */
  readonly servers: readonly string[];
  readonly newResolver: (server: string | null) => DnsQueries;
}

// Two tries of 1.5 s: three seconds for an answer.
const PATIENCE = { timeout: 1_500, tries: 2 };

export const newDomainResolver = (server: string | null): DnsQueries => {
  const resolver = new Resolver(PATIENCE);
  if (server !== null) resolver.setServers([server]);
  return resolver;
};

const MAX_HOPS = 8;
const MAX_FOUND = 10;
const MAX_TEXT = 300;
/** The name server knows that there is no such record. Every other error says nothing of the record. */
const ABSENT: ReadonlySet<string> = new Set(["ENODATA", "ENOTFOUND"]);

const codeOf = (error: unknown): string => String((error as { readonly code?: unknown }).code ?? "unknown");

/** Nobody could tell. */
class Unknown extends Error {
  override readonly name = "Unknown";
}

/** The records; empty if the name server knows that there are none. */
const ask = async <T>(what: string, query: Promise<readonly T[]>): Promise<readonly T[]> => {
  try {
    return await query;
  } catch (error) {
    const code = codeOf(error);
    if (ABSENT.has(code)) return [];
    throw new Unknown(`${what}: ${code === "ETIMEOUT" ? "no answer within 3 s" : code}`);
  }
};

const shown = (lines: readonly string[]): string[] => lines.slice(0, MAX_FOUND).map((line) => line.slice(0, MAX_TEXT).toWellFormed());
const NOT_PRINTABLE = /[^\x20-\x7e]/g;
const printable = (text: string): string => text.replaceAll(NOT_PRINTABLE, "?");
const nameOf = (text: string): string => printable(text.toLowerCase().replace(/\.$/, ""));

type Judged = Pick<DnsVerdict, "status" | "found">;
const judged = (passes: boolean, found: readonly string[]): Judged => ({ status: passes ? "pass" : "fail", found: shown(found) });

const judgeTxt = async (dns: DnsQueries, { name, value }: TxtQuestion): Promise<Judged> => {
  // A long text comes in strings of 255 bytes.
  const texts = (await ask(`TXT ${name}`, dns.resolveTxt(name))).map((strings) => printable(strings.join("")));
  return judged(texts.includes(value), texts);
};

const addressesOf = async (dns: DnsQueries, name: string): Promise<readonly string[]> => {
  const answers = await Promise.allSettled([ask(`A ${name}`, dns.resolve4(name)), ask(`AAAA ${name}`, dns.resolve6(name))]);
  const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  const failed = answers.find((answer) => answer.status === "rejected");
  if (found.length === 0 && failed !== undefined) throw failed.reason;
  return found;
};

/** The names that the chain of CNAMEs leads to, in their order. A loop ends it. */
const followCname = async (dns: DnsQueries, hostname: string): Promise<{ readonly chain: readonly string[]; readonly isEndless: boolean }> => {
  const chain: string[] = [];
  for (let name = hostname; chain.length < MAX_HOPS; ) {
    const [next] = await ask(`CNAME ${name}`, dns.resolveCname(name));
    if (next === undefined) return { chain, isEndless: false };
    name = nameOf(next);
    const isLoop = name === hostname || chain.includes(name);
    chain.push(name);
    if (isLoop) break;
  }
  return { chain, isEndless: true };
};

const judgeCname = async (dns: DnsQueries, { hostname, value, addresses }: CnameQuestion): Promise<Judged> => {
  const { chain, isEndless } = await followCname(dns, hostname);
  if (chain.includes(value)) return judged(true, chain);
  if (isEndless) return judged(false, [...chain, "the CNAME records lead in a circle, or are more than 8"]);
  // ALIAS and records at the top of a zone: the addresses themselves have to be ours, and no others.
  const found = await addressesOf(dns, hostname);
  const ours = new Set(addresses.length > 0 ? addresses : await addressesOf(dns, value));
  return judged(found.length > 0 && found.every((address) => ours.has(address)), [...chain, ...found]);
};

interface CaaRecord {
  readonly issue?: string | undefined;
  readonly critical?: number | undefined;
}
const issuerOf = ({ issue = "" }: CaaRecord): string => nameOf(issue.split(";")[0]?.trim() ?? "");

/** The records of the closest name that has any decide. */
const judgeCaa = async (dns: DnsQueries, { hostname, issuers }: CaaQuestion): Promise<Judged> => {
  const labels = hostname.split(".");
  for (const [at] of labels.entries()) {
    const name = labels.slice(at).join(".");
    const records = (await ask(`CAA ${name}`, dns.resolveCaa(name))) as readonly CaaRecord[];
    if (records.length === 0) continue;
    const issuing = records.filter(({ issue }) => issue !== undefined);
    const found = records.map((record) => `${name}: ${printable(JSON.stringify(record))}`);
    return judged(issuing.length === 0 || issuing.some((record) => issuers.includes(issuerOf(record))), found);
  }
  return judged(true, []);
};

export interface TxtQuestion {
  readonly name: string;
  readonly value: string;
}
export interface CnameQuestion {
  readonly hostname: string;
  readonly value: string;
  /** Empty: those of `value`. */
  readonly addresses: readonly string[];
}
export interface CaaQuestion {
  readonly hostname: string;
  /** The names that the certificate authority is known by; empty: nobody asks. */
  readonly issuers: readonly string[];
}

export const createDnsChecks = ({ servers, newResolver }: DnsDeps) => {
  const asked = servers.length === 0 ? [null] : servers;
  const resolver = servers.length === 0 ? "system" : servers.join(", ");
  /** All name servers have to agree that it passes; one that cannot tell leaves it open, unless another saw it missing. */
  const agree = async (expected: string | null, judge: (dns: DnsQueries) => Promise<Judged>): Promise<DnsVerdict> => {
    const verdicts = await Promise.all(
      asked.map(async (server): Promise<Judged> => {
        try {
          return await judge(newResolver(server));
        } catch (error) {
          if (!(error instanceof Unknown)) throw error;
          return { status: "unknown", found: shown([error.message]) };
        }
      }),
    );
    const worst = (["fail", "unknown", "pass"] as const).find((status) => verdicts.some((verdict) => verdict.status === status)) ?? "unknown";
    const found = verdicts.find(({ status }) => status === worst)?.found ?? [];
    return { status: worst, expected, found, resolver };
  };
  return {
    txt: (question: TxtQuestion): Promise<DnsVerdict> => agree(question.value, (dns) => judgeTxt(dns, question)),
    cname: (question: CnameQuestion): Promise<DnsVerdict> => agree(question.value, (dns) => judgeCname(dns, question)),
    caa: (question: CaaQuestion): Promise<DnsVerdict> =>
      question.issuers.length === 0
        ? Promise.resolve({ status: "pass", expected: null, found: [], resolver: null })
        : agree(question.issuers.join(" or "), (dns) => judgeCaa(dns, question)),
  };
};
export type DnsChecks = ReturnType<typeof createDnsChecks>;

// What is read off the contract and the changelog: catalogue of errors, deprecations, releases.
import { type Bucket, contract, ERROR_CODES, ERRORS, type ErrorCode, isRetryable, LIMITS } from "../../../protocol/index.ts";

export interface ErrorEntry {
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryable: boolean;
  readonly message: string;
  readonly operations: string[];
}

interface OperationFacts {
  readonly errors: readonly string[];
  readonly deprecated?: { readonly since: string; readonly sunset: string; readonly successor?: string };
}

const operations = (): readonly (readonly [string, OperationFacts])[] =>
  Object.entries(contract).flatMap(([group, { operations: all }]) =>
    Object.entries<OperationFacts>(all).map(([name, operation]) => [`${group}.${name}`, operation] as const),
  );

/** Codes without operations may come from any: the doors raise them. */
export const errorCatalogue = (): readonly ErrorEntry[] =>
  ERROR_CODES.map((code) => ({
    code,
    status: ERRORS[code].status,
    retryable: isRetryable(code),
    message: ERRORS[code].message,
    operations: operations()
      .filter(([, { errors }]) => errors.includes(code))
      .map(([name]) => name),
  }));

export const deprecations = () =>
  operations().flatMap(([operation, { deprecated }]) =>
    deprecated === undefined ? [] : [{ operation, since: deprecated.since, sunset: deprecated.sunset, successor: deprecated.successor ?? null }],
  );

export interface Release {
  readonly version: string;
  readonly date: string;
  readonly type: string;
  readonly title: string;
}

const HEADING = /^## +\[?([^\]\s]+)\]?(?: +- +(\d{4}-\d{2}-\d{2}))?/;
const SECTION = /^### +(.+?) *$/;
/** Those of Keep a Changelog, and what the reader has to do. */
const TYPES: ReadonlySet<string> = new Set(["upgrading", "added", "changed", "deprecated", "removed", "fixed", "security"]);

/** Reads the Keep a Changelog form in the file's order, newest first. An entry may run over several indented lines; everything else is prose. */
export const parseChangelog = (text: string): readonly Release[] => {
  const entries: { version: string; date: string; type: string; title: string }[] = [];
  let release: { version: string; date: string } | undefined;
  let type = "";
  let open: { title: string } | undefined;
  for (const line of text.split("\n")) {
    const [, version, date = ""] = HEADING.exec(line) ?? [];
    const [, section] = SECTION.exec(line) ?? [];
    if (version !== undefined) [release, type] = [{ version, date }, ""];
    if (section !== undefined) type = section.toLowerCase();
    if (open !== undefined && /^ +\S/.test(line)) {
      open.title += ` ${line.trim()}`;
      continue;
    }
    open = undefined;
    if (release === undefined || !TYPES.has(type) || !line.startsWith("- ")) continue;
    const entry = { ...release, type, title: line.slice(2).trim() };
    entries.push(entry);
    open = entry;
  }
  return entries;
};

/** Newer than a version of the list, or from an ISO date on. An unknown version has nothing newer that could be named, so all is shown. */
export const releasesSince = (releases: readonly Release[], since: string | undefined): readonly Release[] => {
  if (since === undefined) return releases;
  if (/^\d{4}-\d{2}-\d{2}/.test(since)) return releases.filter(({ date }) => date === "" || date >= since.slice(0, 10));
  const index = releases.findIndex(({ version }) => version === since);
  return index < 0 ? releases : releases.slice(0, index);
};

/** The figures per minute that the service states for one caller, before anyone's overrides. */
export const statedLimits = () => {
  const pairing = Object.entries(LIMITS)
    .filter(([name]) => name.startsWith("pairing."))
    .flatMap(([, buckets]) => (buckets as readonly Bucket[]).filter(({ per }) => per !== "installation").map(({ limit }) => limit));
  return { standard: LIMITS.standard[0].limit, pairing: { min: Math.min(...pairing), max: Math.max(...pairing) }, heartbeat: LIMITS.heartbeat[0].limit };
};

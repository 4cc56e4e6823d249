// Derives the error catalogue, the deprecations and the releases from the contract and the changelog.
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

/** A code without operations can come from any of them: the transports raise it. */
export const errorCatalogue = (): readonly ErrorEntry[] => {
  const all = operations();
  return ERROR_CODES.map((code) => ({
    code,
    status: ERRORS[code].status,
    retryable: isRetryable(code),
    message: ERRORS[code].message,
    operations: all.filter(([, { errors }]) => errors.includes(code)).map(([name]) => name),
  }));
};

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
/** The sections of Keep a Changelog, and `upgrading`: what the reader must do. */
const TYPES: ReadonlySet<string> = new Set(["upgrading", "added", "changed", "deprecated", "removed", "fixed", "security"]);

/** Reads the Keep a Changelog form in the file's order, newest first. An entry may continue on indented lines; skips everything else. */
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

/** The releases after a version or from an ISO date on; all of them after an unknown version. */
export const releasesSince = (releases: readonly Release[], since: string | undefined): readonly Release[] => {
  if (since === undefined) return releases;
  if (/^\d{4}-\d{2}-\d{2}/.test(since)) return releases.filter(({ date }) => date === "" || date >= since.slice(0, 10));
  const index = releases.findIndex(({ version }) => version === since);
  return index < 0 ? releases : releases.slice(0, index);
};

/** The limits per minute of one caller, before overrides. */
export const statedLimits = () => {
  const pairing = Object.entries(LIMITS)
    .filter(([name]) => name.startsWith("pairing."))
    .flatMap(([, buckets]) => (buckets as readonly Bucket[]).filter(({ per }) => per !== "installation").map(({ limit }) => limit));
  return { standard: LIMITS.standard[0].limit, pairing: { min: Math.min(...pairing), max: Math.max(...pairing) }, heartbeat: LIMITS.heartbeat[0].limit };
};

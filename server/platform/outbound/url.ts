// Which URLs calls to others may have, as far as the text of a URL tells: scheme, port, host, and addresses in any notation.
import { isIP } from "node:net";
import { createBoundedCache } from "../../core/structures/bounded-cache.ts";
import { createJudgeAddress, type IsOwn, type JudgeAddress, OWN } from "./address.ts";

export interface JudgedUrl {
  /** Null if the text is not a URL. */
  readonly url: URL | null;
  /** Null if the URL may be called. */
  readonly refusal: string | null;
  /** The blocked address, if the URL names one. */
  readonly address: string | null;
}
export type JudgeUrl = (text: string) => JudgedUrl;

export interface UrlRules {
  readonly allowHttp: boolean;
  /** With an allow-list the operator's own networks count, so names inside them are judged by their addresses. */
  readonly allowLocalNames: boolean;
  /** The URLs of this installation; read at each use, as ports become known late. */
  readonly ownUrls: () => readonly string[];
  readonly judgeAddress: JudgeAddress;
}

const MAX_URL = 2_048;
const MAX_HOST = 253;
const LOCAL_NAME = /(^|\.)(localhost|local|internal)$/;
const METADATA_NAMES: ReadonlySet<string> = new Set(["metadata", "metadata.goog", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"]);

/** The host as an address without brackets, or as a name. */
export const hostOf = ({ hostname }: URL): string => (hostname.startsWith("[") ? hostname.slice(1, -1) : hostname);

export const portOf = ({ port, protocol }: Pick<URL, "port" | "protocol">): number => Number(port === "" ? (protocol === "https:" ? 443 : 80) : port);

/** 80 is the port of a URL without one, so whoever allows http means it too. */
const isPortAllowed = (port: number, allowHttp: boolean): boolean => port === 443 || port >= 1_024 || (allowHttp && port === 80);

/** A name of ours is refused with any port; of an address only the port of the URL, as others may share the machine. */
const isOwnUrl = (url: URL, ownUrls: readonly URL[]): boolean =>
  ownUrls.some((own) => own.hostname === url.hostname && ((isIP(hostOf(url)) === 0 && url.hostname !== "localhost") || portOf(own) === portOf(url)));

const refusalOfName = (name: string, { allowLocalNames }: UrlRules): string | null => {
  if (name.length > MAX_HOST) return `the host must have at most ${MAX_HOST} characters`;
  if (name.endsWith(".")) return "the host must not end with a dot";
  if (METADATA_NAMES.has(name)) return "the host names a metadata service";
  return LOCAL_NAME.test(name) && !allowLocalNames ? "the host names a private network" : null;
};

const refusalOf = (url: URL, rules: UrlRules, ownUrls: readonly URL[]): string | null => {
  const host = hostOf(url);
  if (url.protocol !== "https:" && !(rules.allowHttp && url.protocol === "http:"))
    return rules.allowHttp ? "must be an http or https URL" : "must be an https URL";
  if (url.username !== "" || url.password !== "") return "must not contain a user or password";
  if (url.hash !== "") return "must not contain a fragment";
  if (!isPortAllowed(portOf(url), rules.allowHttp)) return "the port must be 443, 8443 or 1024 to 65535";
  if (isOwnUrl(url, ownUrls)) return OWN;
  return isIP(host) === 0 ? refusalOfName(host, rules) : null;
};

/** An endpoint is called again and again. */
const KNOWN_URLS = 1_000;

/** `URL` brings every notation of an address (octal, hexadecimal, one number, full-width digits) into one form before this judges it. */
export const createJudgeUrl = (rules: UrlRules): JudgeUrl => {
  const known = createBoundedCache<JudgedUrl>(KNOWN_URLS);
  let judgedBeside = "";
  const judge = (text: string, ownUrls: readonly string[]): JudgedUrl => {
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url === null) return { url, refusal: "is not a URL", address: null };
    const refusal = refusalOf(
      url,
      rules,
      ownUrls.map((each) => new URL(each)),
    );
    return { url, refusal, address: refusal !== null && isIP(hostOf(url)) !== 0 ? hostOf(url) : null };
  };
  /** Anew each time: nodes come and go. */
  const judgeLiteral = (judged: JudgedUrl): JudgedUrl => {
    const { url, refusal } = judged;
    if (url === null || refusal !== null || isIP(hostOf(url)) === 0) return judged;
    const blocked = rules.judgeAddress(hostOf(url), portOf(url));
    return blocked === null ? judged : { url, refusal: blocked, address: hostOf(url) };
  };
  return (text) => {
    if (text.length > MAX_URL) return { url: null, refusal: `must have at most ${MAX_URL} characters`, address: null };
    const ownUrls = rules.ownUrls();
    const beside = ownUrls.join(" ");
    if (beside !== judgedBeside) known.clear();
    judgedBeside = beside;
    const before = known.get(text);
    if (before !== undefined) return judgeLiteral(before);
    const judged = judge(text, ownUrls);
    known.set(text, judged);
    return judgeLiteral(judged);
  };
};

/** Which calls are refused: by the text of their URL, and by the address that is about to be connected. */
export interface OutboundGuard {
  readonly judgeUrl: JudgeUrl;
  readonly judgeAddress: JudgeAddress;
}

export interface GuardSettings extends Pick<UrlRules, "allowHttp" | "ownUrls"> {
  /** Networks that may be reached although they are not public. */
  readonly allowCidrs: readonly string[];
  /** What this installation itself listens on, which may be reached from nowhere. */
  readonly isOwn: IsOwn;
}

export const createOutboundGuard = ({ allowCidrs, isOwn, ...rules }: GuardSettings): OutboundGuard => {
  const judgeAddress = createJudgeAddress(allowCidrs, isOwn);
  return { judgeAddress, judgeUrl: createJudgeUrl({ ...rules, allowLocalNames: allowCidrs.length > 0, judgeAddress }) };
};

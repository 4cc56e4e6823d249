// Checks a certificate before it is used: its chain, its key, its names, its dates.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";

export const PEM_REFUSALS = [
  "not_a_certificate",
  "not_a_private_key",
  "encrypted_key",
  "weak_key",
  "key_mismatch",
  "name_mismatch",
  "expired",
  "not_yet_valid",
  "broken_chain",
  "chain_too_long",
] as const;
export type PemRefusal = (typeof PEM_REFUSALS)[number];

export interface CheckedPem {
  readonly issuer: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly fingerprint: string;
}
export type JudgedPem = { readonly checked: CheckedPem } | { readonly refusal: PemRefusal };

const MAX_CHAIN = 10;
const MIN_RSA_BITS = 2_048;
const BLOCKS = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates of a chain, that of the name first; null: one of them cannot be read. */
const readChain = (pem: string): readonly X509Certificate[] | null => {
  try {
    return (pem.match(BLOCKS) ?? []).map((block) => new X509Certificate(block));
  } catch {
    return null;
  }
};

const readKey = (pem: string) => {
  if (/ENCRYPTED/.test(pem)) return "encrypted_key" as const;
  try {
    return createPrivateKey(pem);
  } catch {
    return "not_a_private_key" as const;
  }
};

const partOf = (issuer: string, field: string): string | undefined =>
  issuer
    .split("\n")
    .find((line) => line.startsWith(`${field}=`))
    ?.slice(field.length + 1);
const issuerOf = ({ issuer }: X509Certificate): string => (partOf(issuer, "O") ?? partOf(issuer, "CN") ?? issuer.replaceAll("\n", ", ")).slice(0, 200);

const isChained = (chain: readonly X509Certificate[]): boolean =>
  chain.every((certificate, at) => {
    const above = chain[at + 1];
    return above === undefined || (certificate.checkIssued(above) && certificate.verify(above.publicKey));
  });

const isWeak = (key: ReturnType<typeof createPrivateKey>): boolean => {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type === "rsa") return (details?.modulusLength ?? 0) < MIN_RSA_BITS;
  return type !== "ec" && type !== "ed25519";
};

/** OpenSSL decides what a server can use. */
const isUsable = (cert: string, key: string): boolean => {
  try {
    createSecureContext({ cert, key });
    return true;
  } catch {
    return false;
  }
};

export const judgePem = (given: { readonly chain: string; readonly key: string }, hostname: string, now: Date): JudgedPem => {
  const chain = readChain(given.chain);
  const [leaf] = chain ?? [];
  if (chain === null || leaf === undefined) return { refusal: "not_a_certificate" };
  if (chain.length > MAX_CHAIN) return { refusal: "chain_too_long" };
  const key = readKey(given.key);
  if (typeof key === "string") return { refusal: key };
  if (isWeak(key)) return { refusal: "weak_key" };
  if (!leaf.checkPrivateKey(key)) return { refusal: "key_mismatch" };
  // A name in the subject alone counts for no browser.
  if (leaf.checkHost(hostname, { subject: "never" }) === undefined) return { refusal: "name_mismatch" };
  const [notBefore, notAfter] = [new Date(leaf.validFrom), new Date(leaf.validTo)];
  if (notAfter <= now) return { refusal: "expired" };
  if (notBefore > now) return { refusal: "not_yet_valid" };
  if (!isChained(chain)) return { refusal: "broken_chain" };
  if (!isUsable(given.chain, given.key)) return { refusal: "not_a_certificate" };
  return { checked: { issuer: issuerOf(leaf), notBefore, notAfter, fingerprint: leaf.fingerprint256 } };
};

/** The SHA-256 of the first certificate of a chain that was checked before it was stored. */
export const fingerprintOf = (chain: string): string => new X509Certificate(chain).fingerprint256;

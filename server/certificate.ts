// The certificate of the public listener, or of the edge: checks it before the gateway listens and every few seconds, and replaces it without a restart.
import { createHash, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { Config } from "./config.ts";
import type { Clock } from "./core/clock.ts";
import { ConfigError } from "./core/errors.ts";
import type { TlsFiles } from "./gateway/uws/listen.ts";
import type { Log } from "./platform/telemetry/log.ts";

export interface Certificate {
  /** Null: plain HTTP. */
  readonly files: TlsFiles | null;
  /** Sets the function that takes a changed certificate into use. */
  renewing(renew: ((files: TlsFiles) => Promise<void>) | undefined): void;
  /** Checks the files now; never rejects. */
  check(): Promise<void>;
  close(): void;
}

export interface CertificateOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly everyMs?: number | undefined;
  readonly prefix?: CertificatePrefix;
}

const CHECK_MS = 10_000;

/** The content of the two files. */
interface Pair {
  readonly digest: string;
  /** Null when the certificate is usable. */
  readonly problem: string | null;
  readonly validTo: string;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The prefix of the settings with the files: those of the public listener, or of the edge. */
export type CertificatePrefix = "" | "EDGE_";

const judge = (prefix: CertificatePrefix, cert: Buffer, key: Buffer): Omit<Pair, "digest"> => {
  try {
    const { validTo } = new X509Certificate(cert);
    createSecureContext({ cert });
    try {
      createSecureContext({ cert, key });
      return { problem: null, validTo };
    } catch (error) {
      const mismatch = /mismatch/i.test(messageOf(error));
      return {
        problem: mismatch
          ? `${prefix}TLS_KEY_FILE: is not the key of ${prefix}TLS_CERT_FILE`
          : `${prefix}TLS_KEY_FILE: holds no PEM key without passphrase (${messageOf(error)})`,
        validTo,
      };
    }
  } catch (error) {
    return { problem: `${prefix}TLS_CERT_FILE: holds no PEM certificate (${messageOf(error)})`, validTo: "" };
  }
};

const readPair = async (prefix: CertificatePrefix, { certFile, keyFile }: TlsFiles): Promise<Pair> => {
  const [cert, key] = await Promise.all([readFile(certFile).catch(messageOf), readFile(keyFile).catch(messageOf)]);
  if (typeof cert === "string") return { digest: cert, validTo: "", problem: `${prefix}TLS_CERT_FILE: cannot be read (${cert})` };
  if (typeof key === "string") return { digest: key, validTo: "", problem: `${prefix}TLS_KEY_FILE: cannot be read (${key})` };
  return { digest: createHash("sha256").update(cert).update("\0").update(key).digest("hex"), ...judge(prefix, cert, key) };
};

const filesOf = (config: Config, prefix: CertificatePrefix): TlsFiles | null => {
  const { [`${prefix}TLS_CERT_FILE` as const]: certFile, [`${prefix}TLS_KEY_FILE` as const]: keyFile } = config;
  return certFile === undefined || keyFile === undefined ? null : { certFile, keyFile };
};

/** Throws `ConfigError` when the files are unusable; null without TLS. */
export const checkCertificate = async (config: Config, prefix: CertificatePrefix = ""): Promise<Pair | null> => {
  const files = filesOf(config, prefix);
  if (files === null) return null;
  const pair = await readPair(prefix, files);
  if (pair.problem !== null) throw new ConfigError(pair.problem);
  return pair;
};

export const openCertificate = async (config: Config, { clock, log, everyMs = CHECK_MS, prefix = "" }: CertificateOptions): Promise<Certificate> => {
  const files = filesOf(config, prefix);
  let current = await checkCertificate(config, prefix);
  const none = (): void => undefined;
  if (files === null || current === null) return { files: null, renewing: none, check: async () => none(), close: none };
  if (Date.parse(current.validTo) < clock.now().getTime()) log.warn({ validTo: current.validTo }, "the certificate has expired");

  let renew: ((files: TlsFiles) => Promise<void>) | undefined;
  /** The digest of a pair that was unusable at one check: operators replace the two files one after the other. */
  let suspected = "";
  let reported = "";
  const report = (digest: string, problem: unknown, insist: boolean): void => {
    if (digest !== reported && (insist || digest === suspected)) {
      reported = digest;
      log.error({ problem }, "could not use the new certificate; the old one stays");
    }
    suspected = digest;
  };
  const checkOnce = async (insist: boolean): Promise<void> => {
    const pair = await readPair(prefix, files);
    if (pair.digest === current?.digest) return;
    if (pair.problem !== null) return report(pair.digest, pair.problem, insist);
    try {
      await renew?.(files);
    } catch (error) {
      return report(pair.digest, messageOf(error), insist);
    }
    current = pair;
    log.info({ validTo: pair.validTo }, "loaded the new certificate; new connections use it");
  };
  let checking = Promise.resolve();
  const check = (insist: boolean): Promise<void> => {
    checking = checking.then(() => checkOnce(insist)).catch((error: unknown) => log.error({ error }, "the check of the certificate failed"));
    return checking;
  };
  const timer = setInterval(() => void check(false), everyMs);
  timer.unref();
  return {
    files,
    renewing: (given) => {
      renew = given;
    },
    check: () => check(true),
    close: () => clearInterval(timer),
  };
};

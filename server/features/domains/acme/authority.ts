// The certificate authority (ACME, RFC 8555), reached by the outbound client: acme-client speaks the protocol, and only its requests are sent from here.
import type { Client } from "acme-client";
import { type Outbound, OutboundError } from "../../../core/ports/outbound.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { SecretBox } from "../../../platform/keys/secrets.ts";

export interface AcmeSettings {
  readonly directoryUrl: string;
  readonly email: string | undefined;
  readonly eab: { readonly kid: string; readonly hmacKey: string } | null;
  /** Between two questions whether the authority has decided; twice as long each time. */
  readonly pollMs: number;
}

export interface AuthorityDeps {
  readonly db: Db;
  readonly secretBox: SecretBox;
  /** Trusts the operator's address, and ACME_CA_FILE. */
  readonly outbound: Outbound;
  readonly settings: AcmeSettings;
}

/** What the authority, or the way to it, refused. */
export class AcmeError extends Error {
  override readonly name = "AcmeError";
  /** 0: no answer. */
  readonly status: number;
  readonly type: unknown;
  readonly retryAfterMs: number;

  constructor(message: string, { status, type, retryAfterMs = 0 }: { readonly status: number; readonly type?: unknown; readonly retryAfterMs?: number }) {
    super(message);
    this.status = status;
    this.type = type;
    this.retryAfterMs = retryAfterMs;
  }

  /** Nothing is decided: the same order can go on later. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

const TIMEOUT_MS = 20_000;
const MAX_BODY = 1_048_576;
const MAX_RETRY_AFTER_MS = 7 * 86_400_000;
const BAD_NONCE = "urn:ietf:params:acme:error:badNonce";
const ACCOUNT_UNKNOWN = "urn:ietf:params:acme:error:accountDoesNotExist";

/** What acme-client gets in place of an answer of its own HTTP library. */
interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: unknown;
}
interface Request {
  readonly headers?: Readonly<Record<string, string>>;
  readonly data?: unknown;
}
type Send = (url: string, method: string, request?: Request) => Promise<Answer>;

interface Problem {
  readonly type?: unknown;
  readonly detail?: unknown;
}

const readBody = (text: string, type: string): unknown => {
  if (!/json/i.test(type)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** Seconds or a date. */
const retryAfterOf = (value: string | undefined, now: number): number => {
  if (value === undefined) return 0;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS) : 0;
};

const problemOf = (data: unknown): Problem => (typeof data === "object" && data !== null ? (data as Problem) : {});

const createSend =
  (outbound: Outbound): Send =>
  async (url, _method, { data } = {}) => {
    // A nonce can be asked for by GET as well as by HEAD.
    const method = data === undefined ? "GET" : "POST";
    const body = data === undefined ? {} : { body: JSON.stringify(data), headers: { "content-type": "application/jose+json" } };
    const answer = await outbound.send({ owner: "acme", url, method, ...body, timeoutMs: TIMEOUT_MS, maxBodyBytes: MAX_BODY }).catch((error: unknown) => {
      throw error instanceof OutboundError ? new AcmeError(`the certificate authority cannot be reached: ${error.message}`, { status: 0 }) : error;
    });
    const parsed = readBody(answer.body.toString("utf8"), answer.headers["content-type"] ?? "");
    const { type, detail } = problemOf(parsed);
    if (answer.statusCode >= 400 && type !== BAD_NONCE) {
      const date = Date.parse(answer.headers["date"] ?? "");
      const retryAfterMs = retryAfterOf(answer.headers["retry-after"], date);
      throw new AcmeError(typeof detail === "string" ? detail : `the certificate authority answered ${answer.statusCode}`, {
        status: answer.statusCode,
        type,
        retryAfterMs,
      });
    }
    return { status: answer.statusCode, headers: answer.headers, data: parsed };
  };

/** All nodes use the key of whoever came first, so that the authority knows one account. */
const keepAccountKey = async ({ db, secretBox, settings: { directoryUrl } }: AuthorityDeps, create: () => Promise<Buffer>) => {
  const context = `acme-account|${directoryUrl}` as const;
  const find = () => db.system.acmeAccount.findFirst({ where: { directoryUrl } });
  const known = await find();
  if (known === null) {
    const key = secretBox.seal((await create()).toString("utf8"), context);
    await db.system.acmeAccount.createMany({ data: [{ directoryUrl, key }], skipDuplicates: true });
  }
  const stored = known ?? (await find());
  if (stored === null) throw new Error("the account at the certificate authority was deleted meanwhile");
  return { key: secretBox.open(stored.key, context), accountUrl: stored.accountUrl };
};

export const createAuthority = (deps: AuthorityDeps) => {
  const { db, outbound, settings } = deps;
  const { directoryUrl, email, eab, pollMs } = settings;
  let identities: Promise<readonly string[]> | undefined;

  const open = async (): Promise<Client> => {
    // Loaded by installations that order certificates only.
    const { Client: AcmeClient, crypto } = await import("acme-client");
    const { key, accountUrl } = await keepAccountKey(deps, () => crypto.createPrivateEcdsaKey("P-256"));
    const backoff = { backoffAttempts: 9, backoffMin: pollMs, backoffMax: 5_000 };
    const account = accountUrl === null ? {} : { accountUrl };
    const client = new AcmeClient({ directoryUrl, accountKey: key, ...account, ...backoff, ...(eab === null ? {} : { externalAccountBinding: eab }) });
    // as: its HTTP client is no part of its types. Its own one would bypass ours.
    const { http } = client as unknown as { readonly http: { request: Send } };
    http.request = createSend(outbound);
    if (accountUrl !== null) return client;
    await client.createAccount({ termsOfServiceAgreed: true, ...(email === undefined ? {} : { contact: [`mailto:${email}`] }) });
    await db.system.acmeAccount.updateMany({ where: { directoryUrl }, data: { accountUrl: client.getAccountUrl() } });
    return client;
  };
  let opened: Promise<Client> | undefined;
  const openOnce = (): Promise<Client> => {
    opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  const forget = async (client: Client): Promise<void> => {
    opened = undefined;
    await db.system.acmeAccount.updateMany({ where: { directoryUrl, accountUrl: client.getAccountUrl() }, data: { accountUrl: null } });
  };

  const readIdentities = async (): Promise<readonly string[]> => {
    const { data } = await createSend(outbound)(directoryUrl, "get");
    const { meta } = data as { readonly meta?: { readonly caaIdentities?: unknown } };
    return Array.isArray(meta?.caaIdentities) ? meta.caaIdentities.filter((each) => typeof each === "string").map((each) => each.toLowerCase()) : [];
  };

  return {
    host: new URL(directoryUrl).hostname,
    /** Runs with the client of the account. One that the authority no longer knows is forgotten: the next run opens one with the same key. */
    withClient: async <T>(run: (client: Client) => Promise<T>): Promise<T> => {
      const client = await openOnce();
      try {
        return await run(client);
      } catch (error) {
        if (error instanceof AcmeError && error.type === ACCOUNT_UNKNOWN) await forget(client);
        throw error;
      }
    },
    /** The names by which CAA records allow the authority. Empty while they cannot be read, or if it has none. */
    caaIdentities: (): Promise<readonly string[]> => {
      identities ??= readIdentities().catch(() => {
        identities = undefined;
        return [];
      });
      return identities;
    },
    createKey: async (): Promise<string> => (await (await import("acme-client")).crypto.createPrivateEcdsaKey("P-256")).toString("utf8"),
    createRequest: async (hostname: string, key: string): Promise<Buffer> =>
      (await (await import("acme-client")).crypto.createCsr({ altNames: [hostname] }, key))[1],
  };
};
export type Authority = ReturnType<typeof createAuthority>;

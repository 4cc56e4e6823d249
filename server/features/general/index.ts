// Facts about the service and about its caller, and stream tickets.

import { type Announcement, contract, type Impersonation } from "../../../protocol/index.ts";
import { permissionsIn, selectorOf } from "../../core/access.ts";
import { type Clock, secondsFromNow } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newSecret, secretHash } from "../../core/ids.ts";
import type { Flags } from "../../core/people/flags.ts";
import { seenTenants } from "../../core/people/seen-tenants.ts";
import { type CookieNames, CSRF_HEADER } from "../../core/people/session-cookies.ts";
import { userOf } from "../../core/people/user-of.ts";
import type { Memberships, StreamTickets } from "../../core/ports/lookups.ts";
import type { OpenScope, Principal, UserPrincipal } from "../../core/scope.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature } from "../kit.ts";
import { atomOf } from "./atom.ts";
import { deprecations, errorCatalogue, parseChangelog, releasesSince, statedLimits } from "./rules.ts";
import { deleteExpired, insertTicket, takeTicket } from "./store.ts";

export { statedLimits };

export interface ServiceFacts {
  readonly name: string;
  readonly version: string;
  readonly environment: string;
  readonly commit: string;
  readonly features: readonly string[];
  /** Who takes payments for plans. */
  readonly payments: "none" | "stripe";
  /** See `statedLimits`. */
  readonly limits: ReturnType<typeof statedLimits>;
  /** Known once the listener is open. */
  docsUrl(): string;
}

export interface AuthFacts {
  issuer(): string;
  readonly audience: string;
  readonly algorithms: readonly string[];
  readonly local: boolean;
  /** An absolute URL, known once the listener is open. */
  jwksUri(): string;
  /** How people sign in here; null if they cannot. */
  readonly signIn: "oidc" | "link" | null;
  loginUrl(): string;
  readonly clientId: string | null;
  readonly scopes: readonly string[];
  /** Null while the provider is away. */
  authorizationEndpoint(): Promise<string | null>;
  cookies(): CookieNames;
}

export interface BucketView {
  readonly bucket: string;
  readonly limit: number | null;
  readonly remaining: number | null;
  readonly windowSeconds: number;
  readonly resetAt: Date;
}

export interface GeneralDeps {
  readonly db: Clients;
  readonly clock: Clock;
  readonly memberships: Memberships;
  readonly service: ServiceFacts;
  readonly auth: AuthFacts;
  /** Users who are administrators of this installation. */
  readonly administrators: readonly string[];
  /** Text of CHANGELOG.md. */
  readonly changelog: string;
  readonly flags: Flags;
  readonly announcements: {
    current(): Promise<Announcement[]>;
    /** What they have not dismissed. */
    undismissed(userId: string): Promise<Announcement[]>;
  };
  readonly rateLimits: { describe(scope: OpenScope): Promise<readonly BucketView[]> };
}

export interface GeneralFeature extends Feature<typeof contract.general> {
  readonly jobs: readonly Job[];
  readonly streamTickets: StreamTickets;
}

// Long enough to open a connection, and expired before anybody finds the ticket in a log.
const TICKET_SECONDS = 60;

export const createGeneral = (deps: GeneralDeps): GeneralFeature => ({
  handlers: implement(contract.general, { ...createPublicHandlers(deps), ...createCallerHandlers(deps) }),
  streamTickets: { redeem: (ticket) => takeTicket(deps.db, secretHash(ticket), deps.clock.now()) },
  jobs: [{ name: "general.forget-tickets", everyMs: 60_000, run: () => deleteExpired(deps.db, deps.clock.now()) }],
});

type CallerOperation = "me" | "streamTicket" | "rateLimit";

const createPublicHandlers = ({ service, auth, changelog, flags, announcements }: GeneralDeps): Omit<Handlers<typeof contract.general>, CallerOperation> => {
  const releases = parseChangelog(changelog);
  const catalogue = errorCatalogue();
  const ending = deprecations();
  const { name, version, environment, commit, features, limits, payments } = service;
  return {
    info: async () => ({
      name,
      version,
      apiVersion: "v1",
      environment,
      commit,
      docsUrl: service.docsUrl(),
      limits,
      features: [...features, ...(await flags.on(null))],
      announcements: await announcements.current(),
      payments,
    }),
    changelog: async (_call, { since }) => ({ items: [...releasesSince(releases, since)] }),
    changelogFeed: async () => atomOf({ name, self: new URL("changelog.atom", service.docsUrl()).href }, releases),
    deprecations: async () => ({ items: ending }),
    errors: async () => ({ items: [...catalogue] }),
    error: async ({ fail }, { code }) => {
      const entry = catalogue.find((each) => each.code === code);
      if (entry === undefined) throw fail("ERROR_CODE_NOT_FOUND", { code });
      return entry;
    },
    authConfig: async () => ({
      issuer: auth.issuer(),
      audience: auth.audience,
      jwksUri: auth.jwksUri(),
      algorithms: [...auth.algorithms],
      local: auth.local,
      signIn: auth.signIn,
      loginUrl: auth.signIn === null ? null : auth.loginUrl(),
      clientId: auth.clientId,
      scopes: [...auth.scopes],
      authorizationEndpoint: await auth.authorizationEndpoint(),
      csrf: { cookie: auth.cookies().csrf, header: CSRF_HEADER },
    }),
  };
};

const createCallerHandlers = ({
  db,
  clock,
  memberships,
  rateLimits,
  flags,
  administrators,
  announcements,
}: GeneralDeps): Pick<Handlers<typeof contract.general>, CallerOperation> => ({
  me: async ({ scope }) => {
    const { principal, tenantId } = scope;
    if (principal === null) throw new AppError("UNAUTHORIZED");
    const role = principal.kind === "agent" ? null : principal.role;
    return {
      credential: principal.kind,
      subject: subjectOf(principal),
      tenantId,
      role,
      permissions: [...permissionsIn({ principal })],
      selector: selectorOf({ principal }),
      features: [...(await flags.on(tenantId))],
      memberships:
        principal.kind === "user"
          ? seenTenants(principal, await memberships.list(principal.userId)).map((each) => ({ tenantId: each.tenantId, role: each.role }))
          : [],
      announcements: principal.kind === "user" ? await announcements.undismissed(principal.userId) : [],
      administrator: principal.kind === "user" && principal.impersonator === undefined && administrators.includes(principal.userId),
      impersonation: principal.kind === "user" ? impersonationOf(principal) : null,
    };
  },

  streamTicket: async ({ scope }) => {
    const { userId, session, impersonator } = userOf(scope);
    const ticket = newSecret();
    const expiresAt = secondsFromNow(TICKET_SECONDS, clock.now());
    const [sessionId, impersonationId] = [session?.sessionId ?? null, impersonator?.impersonation?.impersonationId ?? null];
    await insertTicket(db, scope, { hash: secretHash(ticket), userId, sessionId, impersonationId, expiresAt });
    return { ticket, expiresAt: expiresAt.toISOString() };
  },

  rateLimit: async ({ scope }) => ({ items: (await rateLimits.describe(scope)).map(({ resetAt, ...same }) => ({ ...same, resetAt: resetAt.toISOString() })) }),
});

const impersonationOf = ({ impersonator }: UserPrincipal) => {
  if (impersonator?.impersonation == null) return null;
  const { impersonationId, adminId, readOnly, expiresAt } = impersonator.impersonation;
  return { impersonationId: impersonationId as Impersonation["impersonationId"], adminId, readOnly, expiresAt: expiresAt.toISOString() }; // as: the column holds nothing else
};

const subjectOf = (principal: Principal): string => {
  if (principal.kind === "user") return principal.userId;
  return principal.kind === "apiKey" ? principal.keyId : principal.agentId;
};

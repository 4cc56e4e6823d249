// Guide to the facts about the service and its caller.
import type { Guide } from "./guide.ts";
import { announcement } from "./installation/announcements.ts";
import { AT, IDS } from "./records.ts";

const { tenantId, userId } = IDS;
const deviceNotFound = {
  code: "DEVICE_NOT_FOUND",
  status: 404,
  retryable: false,
  message: "Device {deviceId} was not found.",
  operations: ["devices.get", "commands.queue"],
};

export const general: Guide<"general"> = {
  info: {
    description: "Needs no credential. Returns the version that runs here and its rate limits.",
    output: {
      name: "mooring",
      version: "0.3.0",
      apiVersion: "v1",
      environment: "production",
      commit: "4b8f1ce",
      docsUrl: "https://gateway.example.org/v1/docs",
      limits: { standard: 100, pairing: { min: 3, max: 10 }, heartbeat: 60 },
      features: ["agent-socket", "poll", "live-feed", "idempotency"],
      announcements: [announcement],
      payments: "none",
    },
  },
  changelog: {
    description: "Lists what each release changed. Entries of type `upgrading` say what you must do before you run or call that release.",
    output: { items: [{ version: "0.2.0", date: "2026-11-22", type: "added", title: "Live streams tell what a viewer has missed" }] },
  },
  changelogFeed: {
    description: "For feed readers: one entry per release, with what it changed as text. What no release has yet is not in it.",
    output: `<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom"></feed>\n`,
  },
  deprecations: {
    description:
      "A deprecated operation keeps working for at least six months after its announcement. Its responses have the headers `Deprecation` and `Sunset`.",
    output: { items: [{ operation: "devices.listHosts", since: "2026-11-21", sunset: "2027-06-01", successor: "/devices" }] },
  },
  errors: { description: "Lists every error code with its status, and whether a retry may succeed.", output: { items: [deviceNotFound] } },
  error: { description: "Returns one code with its status and the operations that use it.", input: { code: "DEVICE_NOT_FOUND" }, output: deviceNotFound },
  authConfig: {
    description: "Returns the identity provider that issues tokens for this gateway. For sign-in pages, and for services that verify tokens themselves.",
    output: {
      issuer: "https://login.example.org/",
      audience: "mooring",
      jwksUri: "https://login.example.org/.well-known/jwks.json",
      algorithms: ["RS256", "EdDSA"],
      local: false,
      signIn: "oidc",
      loginUrl: "https://gateway.example.org/v1/auth/login",
      clientId: "mooring",
      scopes: ["openid", "profile", "email"],
      authorizationEndpoint: "https://login.example.org/authorize",
      csrf: { cookie: "__Host-mooring_csrf", header: "x-csrf-token" },
    },
  },
  me: {
    description: "Checks a credential: returns whom it identifies, the tenant, and the permissions.",
    output: {
      credential: "user",
      subject: userId,
      tenantId,
      role: "owner",
      permissions: ["tenant:read", "device:read", "device:command"],
      selector: null,
      features: ["loadTests", "browserPairing"],
      memberships: [{ tenantId, role: "owner" }],
      announcements: [announcement],
      administrator: false,
      impersonation: null,
    },
  },
  streamTicket: {
    description:
      "Browsers cannot send headers with an event stream, so a ticket takes their place. Each ticket opens one stream within a minute; create another for every connection.",
    output: { ticket: "tkt_6Hs1kP9vR3xB7nQ2", expiresAt: AT },
  },
  rateLimit: {
    description: "Returns the remaining budget of each rate limit that applies to the caller's ordinary calls. This call itself is not limited.",
    output: {
      items: [
        { bucket: "reads", limit: 600, remaining: 588, windowSeconds: 60, resetAt: AT },
        { bucket: "standard", limit: 100, remaining: 97, windowSeconds: 60, resetAt: AT },
      ],
    },
  },
};

// What the service tells about itself and its caller, explained.
import type { Guide } from "./guide.ts";
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
    description: "Open to anyone: which version runs here and which limits it keeps.",
    output: {
      name: "mooring",
      version: "0.1.0",
      apiVersion: "v1",
      environment: "production",
      commit: "4b8f1ce",
      docsUrl: "https://gateway.example.org/v1/docs",
      limits: { standard: 100, pairing: { min: 3, max: 10 }, heartbeat: 60 },
      features: ["agent-socket", "poll", "live-feed", "idempotency"],
    },
  },
  changelog: {
    description: "What each release changed for those who use it. Entries of type `upgrading` say what you must do before you run or call that release.",
    output: { items: [{ version: "0.2.0", date: "2026-11-22", type: "added", title: "Live streams tell what a viewer has missed" }] },
  },
  deprecations: {
    description: "Each stays for at least six months after it was announced, and its answers carry `Deprecation` and `Sunset`.",
    output: { items: [{ operation: "devices.listHosts", since: "2026-11-21", sunset: "2027-06-01", successor: "/devices" }] },
  },
  errors: { description: "Every code that any operation may answer with, and whether trying again may succeed.", output: { items: [deviceNotFound] } },
  error: { description: "One code, as an error's `code` names it.", input: { code: "DEVICE_NOT_FOUND" }, output: deviceNotFound },
  authConfig: {
    description: "For sign-in pages and for services that check tokens themselves.",
    output: {
      issuer: "https://login.example.org/",
      audience: "mooring",
      jwksUri: "https://login.example.org/.well-known/jwks.json",
      algorithms: ["RS256", "EdDSA"],
      local: false,
    },
  },
  me: {
    description: "A quick test of any credential: who it stands for, in which tenant, and what it may do.",
    output: {
      credential: "user",
      subject: userId,
      tenantId,
      role: "owner",
      permissions: ["tenant:read", "device:read", "device:command"],
      memberships: [{ tenantId, role: "owner" }],
    },
  },
  streamTicket: {
    description: "Browsers cannot send headers with an event stream. A ticket opens one stream within a minute; fetch another for each connection.",
    output: { ticket: "tkt_6Hs1kP9vR3xB7nQ2", expiresAt: AT },
  },
  rateLimit: {
    description: "How much is left in every bucket that the caller's everyday calls count against.",
    output: { items: [{ bucket: "standard", limit: 100, remaining: 97, resetAt: AT }] },
  },
};

// The kinds of credentials as OpenAPI security schemes; an API key has three forms, a person two.
import { HEADERS, type Operation } from "../../../protocol/index.ts";
import type { Json } from "./schemas.ts";

const header = (name: string, description: string): Json => ({ type: "apiKey", in: "header", name, description });

export const SECURITY_SCHEMES = {
  bearerAuth: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "For people: an access token of the identity provider that `GET /auth/config` names.",
  },
  sessionCookie: {
    type: "apiKey",
    in: "cookie",
    name: "__Host-mooring_session",
    description: "For browsers: the session that `GET /auth/login` begins. Without TLS the name has no prefix. Changes also need the header `x-csrf-token`.",
  },
  apiKey: header("X-API-Key", "For scripts: an API key, together with x-svc-tenant-id."),
  apiKeyBearer: { type: "http", scheme: "bearer", bearerFormat: "svk_...", description: "For scripts: an API key alone, for the key's own tenant." },
  apiKeyBasic: {
    type: "http",
    scheme: "basic",
    description: "For scripts: an API key as the user, without a password (`curl -u svk_...:`), for the key's own tenant.",
  },
  tenantId: header(HEADERS.tenantId, "The tenant's id, sent with an API key or an agent's signature."),
  agentId: header(HEADERS.agentId, "The agent's id, sent with its signature."),
  agentTimestamp: header(HEADERS.timestamp, "When the agent signed: ISO 8601, at most 5 minutes from the gateway's clock."),
  agentHmac: header(HEADERS.signature, "For agents: lowercase hex of HMAC-SHA256 over body and timestamp, keyed with the device's shared secret."),
} satisfies Readonly<Record<string, Json>>;

type Requirement = Partial<Record<keyof typeof SECURITY_SCHEMES, readonly string[]>>;

const REQUIREMENTS: Readonly<Record<Operation["auth"][number], readonly Requirement[]>> = {
  public: [],
  user: [{ bearerAuth: [] }, { sessionCookie: [] }],
  apiKey: [{ apiKey: [], tenantId: [] }, { apiKeyBearer: [] }, { apiKeyBasic: [] }],
  agent: [{ agentHmac: [], agentTimestamp: [], agentId: [], tenantId: [] }],
};

export const securityOf = ({ auth }: Operation): readonly Requirement[] => auth.flatMap((kind) => REQUIREMENTS[kind]);

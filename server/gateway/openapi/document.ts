// Builds the OpenAPI 3.1 document of one prefix from the contract, the same table that REST and tRPC serve.
import { TAGS } from "../../../protocol/guide/index.ts";
import type { Entry } from "../call/operation-table.ts";
import type { Prefix } from "../http/request-info.ts";
import { versionsOf } from "../rest/versions.ts";
import { errorExamples, errorSchema } from "./errors.ts";
import { HEADER_COMPONENTS } from "./headers.ts";
import { pathsOf } from "./operations.ts";
import { createResponses } from "./responses.ts";
import { createSchemas, type Json } from "./schemas.ts";
import { SECURITY_SCHEMES } from "./security.ts";
import { webhooksOf } from "./webhooks.ts";

const DESCRIPTION = `Mooring is a multi-tenant control plane for self-hosted software: tenants, their devices, pairing, and commands to devices.

**Credentials.** Exactly one per request: \`Authorization: Bearer\` or a session's cookie for people, \`X-API-Key\` with \`x-svc-tenant-id\` for scripts (or the key alone as \`Authorization: Bearer\` or as the user of \`Authorization: Basic\`), four signature headers for agents. Every operation names the credentials that it accepts.

**Answers.** \`{success, data, meta}\`, plus \`meta.pagination\` for lists with pages. Answers may gain fields, and enumerations may gain values, within a version. Another tenant's id gets exactly the answer of an unknown id.

**Errors.** All have one shape, with a \`code\` whose meaning never changes. \`retryable\` says whether the same call may succeed later, \`Retry-After\` says when. \`GET /errors\` lists every code.

**Safe retries.** Send an \`Idempotency-Key\` with a change. A retry with the same key and body gets the first answer again, marked \`Idempotent-Replayed\`.

**Lists** take \`page\` and \`pageSize\`, or \`limit\` and \`offset\`, not both.

**Rate limits** apply per credential and per tenant; the \`X-RateLimit-*\` headers show them.`;

/** Keeps only the components that the document refers to. */
const used = (parts: Json, kind: "headers" | "examples", by: string): Json =>
  Object.fromEntries(Object.entries(parts).filter(([name]) => by.includes(`"#/components/${kind}/${name}"`)));

/** In the order of the guide, which is the order in which viewers show the groups. */
const tagsOf = (entries: readonly Entry[]) => {
  const served = new Set<string>(entries.map(({ tag }) => tag));
  return Object.entries(TAGS)
    .filter(([name]) => served.has(name))
    .map(([name, description]) => ({ name, description }));
};

export interface OpenApiFacts {
  readonly version: string;
  readonly baseUrl: string;
}

export const createOpenApi = (entries: readonly Entry[], prefix: Prefix, { version, baseUrl }: OpenApiFacts): Json => {
  const served = entries.filter(({ op }) => op.rest.length > 0);
  const schemas = createSchemas();
  const versions = versionsOf(served);
  const responses = createResponses(schemas, versions);
  const paths = pathsOf({ schemas, responses, versions }, served);
  schemas.add("Error", errorSchema(prefix));
  const webhooks = webhooksOf(schemas);
  const document = JSON.stringify([paths, responses.components()]);
  return {
    openapi: "3.1.0",
    info: {
      title: "Mooring",
      version,
      description: DESCRIPTION,
      contact: { name: "Whoever runs this installation", url: baseUrl },
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: `${baseUrl}${prefix}`, description: "This gateway" }],
    tags: tagsOf(served),
    paths,
    webhooks,
    components: {
      schemas: schemas.components(),
      responses: responses.components(),
      headers: used(HEADER_COMPONENTS, "headers", document),
      examples: used(errorExamples(prefix), "examples", document),
      securitySchemes: SECURITY_SCHEMES,
    },
  };
};

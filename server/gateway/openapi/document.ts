// The OpenAPI 3.1 document of one prefix, read off the contract: the same table that REST and tRPC serve.
import { TAGS } from "../../../protocol/guide/index.ts";
import type { Entry } from "../catalogue.ts";
import type { Prefix } from "../request-info.ts";
import { errorExamples, errorSchema } from "./errors.ts";
import { HEADER_COMPONENTS } from "./headers.ts";
import { pathsOf } from "./operations.ts";
import { createResponses } from "./responses.ts";
import { createSchemas, type Json } from "./schemas.ts";
import { SECURITY_SCHEMES } from "./security.ts";

const DESCRIPTION = `Mooring is a multi-tenant control plane for self-hosted software: tenants, their devices, the pairing of devices, and commands for them.

**Credentials.** Exactly one per request: \`Authorization: Bearer\` for people, \`X-API-Key\` with \`x-svc-tenant-id\` for scripts, four signature headers for agents. Every operation says which it takes.

**Answers.** \`{success, data, meta}\`, and \`meta.pagination\` with lists that have pages. Answers may gain fields, and enumerations values, within a version. Another tenant's id answers exactly like an unknown one.

**Errors.** One shape for all, with a \`code\` that never changes its meaning; \`retryable\` says whether trying again may succeed, \`Retry-After\` when. \`GET /errors\` lists every code.

**Repeating a change.** Send an \`Idempotency-Key\`. A repeat with the same body gets the first answer, marked \`Idempotent-Replayed\`.

**Lists** take \`page\` and \`pageSize\`, or \`limit\` and \`offset\`, not both.

**Limits** are counted per credential and per tenant, and shown in the \`X-RateLimit-*\` headers.`;

/** Of the parts that could be referred to, those that are. */
const used = (parts: Json, kind: "headers" | "examples", by: string): Json =>
  Object.fromEntries(Object.entries(parts).filter(([name]) => by.includes(`"#/components/${kind}/${name}"`)));

export interface OpenApiFacts {
  readonly version: string;
  readonly baseUrl: string;
}

export const createOpenApi = (entries: readonly Entry[], prefix: Prefix, { version, baseUrl }: OpenApiFacts): Json => {
  const served = entries.filter(({ op }) => op.rest.length > 0);
  const schemas = createSchemas();
  const responses = createResponses(schemas);
  const paths = pathsOf({ schemas, responses }, served);
  schemas.add("Error", errorSchema(prefix));
  const referring = JSON.stringify([paths, responses.components()]);
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
    tags: [...new Set(served.map(({ tag }) => tag))].sort().map((name) => ({ name, ...(TAGS[name] === undefined ? {} : { description: TAGS[name] }) })),
    paths,
    components: {
      schemas: schemas.components(),
      responses: responses.components(),
      headers: used(HEADER_COMPONENTS, "headers", referring),
      examples: used(errorExamples(prefix), "examples", referring),
      securitySchemes: SECURITY_SCHEMES,
    },
  };
};

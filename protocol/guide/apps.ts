// Guide to apps and the catalogue.
import type { Guide } from "./guide.ts";

const template = {
  id: "key-value",
  name: "Key-value store",
  tagline: "A small key-value server with an HTTP interface",
  description: "Keeps texts under names in a file on the device. Reads and writes are plain HTTP calls with a token. It needs no container.",
  version: "1.0.0",
  kind: "process",
  categories: ["databases", "development"],
  minPlan: "free",
  available: true,
  developer: "Mooring",
  license: "Apache-2.0",
  website: null,
  sourceUrl: null,
  architectures: ["amd64", "arm64", "arm"],
  requirements: { memoryMB: 96, diskGB: 0.1 },
  images: [],
  ports: [{ name: "http", protocol: "tcp", config: "port", default: 8_701 }],
  volumes: ["data"],
  configSchema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { port: { type: "integer", title: "Port", default: 8_701, minimum: 1_024, maximum: 65_535 } },
    required: [],
    additionalProperties: false,
  },
  secrets: [{ name: "KV_TOKEN", title: "Token", description: "Callers send it as a bearer token.", required: true, generated: true }],
  healthPath: "/health",
  upgradeNotes: null,
};

export const apps: Guide<"apps"> = {
  templates: {
    description:
      "Lists the applications that devices of the tenant can run, by id. Those that the tenant's plan does not allow are listed too, with the plan that they need.",
    input: { category: "databases", available: true, pageSize: 20 },
    output: { items: [template] },
  },
  template: {
    description: "Returns an application of the catalogue, with the JSON Schema of its configuration and the secrets that it needs.",
    input: { templateId: "key-value" },
    output: template,
  },
};

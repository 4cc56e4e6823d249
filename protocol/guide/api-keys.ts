// API keys, explained.
import type { Guide } from "./guide.ts";
import { apiKey, IDS } from "./records.ts";

const { keyId } = IDS;
const secret = "svk_Vb7nQ2kX9mT4rW6yZ1cD3fG5hJ8x7Qd";

export const apiKeys: Guide<"apiKeys"> = {
  list: {
    description: "All keys of the tenant. The keys themselves are not shown again.",
    input: { page: 1, pageSize: 20 },
    output: { items: [apiKey], total: 1 },
  },
  get: { description: "One key: its role, where it may be used from, when it was last used.", input: { keyId }, output: apiKey },
  create: {
    description:
      "`apiKey` is shown this once; send it as `x-api-key` together with `x-svc-tenant-id`. A key never has a stronger role than its creator has now.",
    input: { name: "backup script", role: "operator", expiresInDays: 90, ipAllowlist: ["203.0.113.0/24"] },
    output: { ...apiKey, apiKey: secret },
  },
  update: {
    description: "Changes name and addresses. Role and life of a key stay; make another for those.",
    input: { keyId, name: "backup script", ipAllowlist: ["203.0.113.0/24"] },
    output: apiKey,
  },
  rotate: {
    description: "Gives the key a new secret under the same id. The old one stays good for `graceSeconds`, so that scripts can be changed one after another.",
    input: { keyId, graceSeconds: 3_600 },
    output: { ...apiKey, apiKey: secret },
  },
  revoke: { description: "The key is refused within seconds on every node, and streams that it opened end.", input: { keyId } },
};

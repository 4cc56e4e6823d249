// Guide to API keys.
import type { Guide } from "../guide.ts";
import { actor, apiKey, IDS } from "../records.ts";

const { keyId } = IDS;
const secret = "svk_Vb7nQ2kX9mT4rW6yZ1cD3fG5hJ8x7Qd";

export const apiKeys: Guide<"apiKeys"> = {
  list: {
    description: "Lists all keys of the tenant, without the keys themselves.",
    input: { page: 1, pageSize: 20 },
    output: { items: [{ ...apiKey, actor }], total: 1 },
  },
  get: {
    description:
      "Returns the key's role, the addresses it may be used from, and when and from where it was last used, to the minute. Its status is `expiring` for the last seven days.",
    input: { keyId },
    output: { ...apiKey, actor },
  },
  create: {
    description:
      "The response is the only one that contains `apiKey`. Send it as `x-api-key` together with `x-svc-tenant-id`, or alone as `Authorization: Bearer` or as the user of `curl -u`. A key can never do more than its creator currently can. `scopes` and `selector` narrow it further: to some permissions of its role, and to some devices.",
    input: {
      name: "backup script",
      role: "operator",
      scopes: ["device:read", "device:command"],
      selector: { tags: ["site:home"] },
      expiresInDays: 90,
      ipAllowlist: ["203.0.113.0/24"],
    },
    output: { ...apiKey, apiKey: secret },
  },
  update: {
    description:
      "Changes the name, the scopes, the devices and the allowed addresses, from the next call on. A key's role and expiry are fixed; create another key for those.",
    input: { keyId, name: "backup script", ipAllowlist: ["203.0.113.0/24"] },
    output: apiKey,
  },
  rotate: {
    description:
      "Issues a new key under the same id. The old one stays valid for `graceSeconds`, but not beyond the key's expiry, so you can change your scripts one after another.",
    input: { keyId, graceSeconds: 3_600 },
    output: { ...apiKey, apiKey: secret },
  },
  revoke: { description: "Every node refuses the key within seconds and ends the streams that it opened.", input: { keyId } },
};

// Guide to tenants.
import type { Guide } from "./guide.ts";
import { IDS, tenant } from "./records.ts";

const { tenantId, userId } = IDS;

export const tenants: Guide<"tenants"> = {
  create: {
    description:
      "The caller becomes the owner: `userId` must be the caller's own id, the `subject` of `GET /auth/me`. A slug is part of URLs and belongs to one tenant only.",
    input: { name: "Acme", slug: "acme", userId },
    output: { tenantId, durableObjectId: tenantId, name: "Acme", slug: "acme", owner: userId },
  },
  list: { description: "Lists every tenant that the caller is a member of.", input: { page: 1, pageSize: 20 }, output: { items: [tenant], total: 1 } },
  get: { description: "Returns the tenant with its plan and the numbers of its resources.", input: { tenantId }, output: tenant },
  update: {
    description:
      "Changes name and slug; the plan can only be changed through billing. If you send `version` (or `If-Match`) and somebody changed the tenant since you read it, the response is 409 `VERSION_CONFLICT` and nothing changes.",
    input: { tenantId, name: "Acme" },
    output: tenant,
  },
};

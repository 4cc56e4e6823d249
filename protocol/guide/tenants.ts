// Tenants, explained.
import type { Guide } from "./guide.ts";
import { IDS, tenant } from "./records.ts";

const { tenantId, userId } = IDS;

export const tenants: Guide<"tenants"> = {
  create: {
    description: "`userId` is the caller's own id, as `GET /auth/me` shows it. The slug is part of addresses and belongs to one tenant only.",
    input: { name: "Acme", slug: "acme", userId },
    output: { tenantId, durableObjectId: tenantId, name: "Acme", slug: "acme", owner: userId },
  },
  list: { description: "Every tenant that the caller is a member of.", input: { page: 1, pageSize: 20 }, output: { items: [tenant], total: 1 } },
  get: { description: "One tenant with its plan and how much it holds.", input: { tenantId }, output: tenant },
  update: {
    description:
      "Changes name and slug. The plan is changed through billing. With `version` (or `If-Match`) the change is made only if nobody else has changed the tenant since you read it.",
    input: { tenantId, name: "Acme" },
    output: tenant,
  },
};

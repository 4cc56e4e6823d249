// Guide to roles and members.
import type { Guide } from "../guide.ts";
import { AT, IDS, LATER, shownWithActors } from "../records.ts";

const { tenantId, userId } = IDS;
const roleId = "rol_01J9ZQD5R7T9V1X3Z5B7D9F1H3";
const memberId = "mem_01J9ZQE6S8V0X2Z4B6D8F0H2K4";
const role = {
  roleId,
  tenantId,
  key: "night-shift",
  name: "Night shift",
  description: "Restarts apps and sees why.",
  builtIn: false,
  permissions: ["device:read", "command:read", "device:command"],
  memberCount: 1,
  version: 1,
  createdBy: `user:${userId}`,
  createdAt: AT,
  updatedAt: AT,
};
const member = {
  memberId,
  tenantId,
  userId: "auth0|77a2d9",
  email: "bea@example.com",
  role: "night-shift",
  roleId,
  selector: { deviceIds: [], tags: ["site:berlin"], fleetIds: [] },
  version: 2,
  createdAt: AT,
  updatedAt: LATER,
};

export const roles: Guide<"roles"> = {
  permissions: {
    description: "The catalogue from which roles are built, with the risk of each permission.",
    output: {
      items: [
        {
          key: "device:command",
          resource: "device",
          action: "command",
          description: "Send commands to devices and cancel them",
          risk: "medium",
          reach: "device",
        },
      ],
    },
  },
  list: { description: "The four built-in roles first, then the tenant's own, oldest first.", output: { items: [shownWithActors(role)] } },
  get: { description: "Returns the role's permissions and the number of its members.", input: { roleId }, output: shownWithActors(role) },
  create: {
    description: "A role can hold only permissions that its creator holds. The number of roles depends on the plan; 50 is the most.",
    input: { name: "Night shift", description: "Restarts apps and sees why.", permissions: ["device:read", "command:read", "device:command"] },
    output: role,
  },
  update: {
    description: "Takes effect at once for all members with this role.",
    input: { roleId, permissions: ["device:read", "command:read"] },
    output: role,
  },
  remove: { description: "Refused while a member has the role.", input: { roleId } },
  listMembers: { description: "Lists all members, oldest first.", input: { page: 1, pageSize: 20 }, output: { items: [member], total: 1 } },
  getMember: { description: "Returns the member's role and devices.", input: { memberId }, output: member },
  updateMember: {
    description:
      "With `selector`, the member sees only the devices that it selects, in lists, counts, commands and live streams alike, and has no permission that concerns the tenant as a whole. Nobody changes a member who may do more, or grants a permission that they do not hold.",
    input: { memberId, roleId, selector: { tags: ["site:berlin"] } },
    output: member,
  },
  removeMember: {
    description: "Everybody may leave; removing somebody else needs `member:write`. The member's API keys stop working too. The last owner cannot leave.",
    input: { memberId },
  },
  transferOwnership: {
    description: "The new owner loses every limit; the caller becomes an admin.",
    input: { tenantId, userId: "auth0|77a2d9" },
    output: { tenantId, owner: "auth0|77a2d9", previousOwner: userId },
  },
};

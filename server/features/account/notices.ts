// Tells people by mail of what has happened, as they have chosen: reads the events of the outbox and orders mails in the relay's transaction.
import { inWords, NOTICES, type Notice, type Notification, type TenantId } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import { type Letter, oneLine } from "../../core/ports/mail.ts";
import { type SystemScope, userIdOf } from "../../core/scope.ts";
import type { Consumer } from "../../platform/outbox/outbox.ts";
import type { FeatureKit } from "../kit.ts";
import type { Recipient, Tenants } from "../tenants/index.ts";
import { findProfiles } from "./store.ts";

interface Rule {
  /** The inviter, everyone with the role of an owner, or of an administrator, too. */
  readonly to: "inviter" | "owners" | "administrators";
  readonly email: boolean;
  readonly what: (data: DispatchedEvent["data"]) => string;
}

const RULES: Readonly<Record<Notice, Rule>> = {
  "invite.accepted": { to: "inviter", email: true, what: () => "A person accepted your invite" },
  "invite.declined": { to: "inviter", email: true, what: () => "A person declined your invite" },
  "member.joined": { to: "owners", email: false, what: ({ roleId }) => `A person became a member with the role ${String(roleId)}` },
  "tenant.suspended": { to: "owners", email: true, what: ({ reason }) => `The tenant was suspended: ${inWords(String(reason))}` },
  "tenant.deletion_scheduled": { to: "owners", email: true, what: ({ deleteAfter }) => `The tenant will be deleted after ${String(deleteAfter)}` },
  "billing.payment_failed": { to: "owners", email: true, what: () => "A payment failed" },
  "webhook.disabled": {
    to: "administrators",
    email: true,
    what: ({ url, reason }) => `The webhook to ${String(url)} was disabled: ${inWords(String(reason))}`,
  },
  "impersonation.started": {
    to: "owners",
    email: true,
    what: ({ adminId, userId, readOnly, reason, expiresAt }) =>
      `The administrator ${String(adminId)} of the installation acts as ${String(userId)}${readOnly === true ? ", who only reads," : ""} until ${String(expiresAt)}: ${String(reason)}`,
  },
  "api_key.expiring": { to: "owners", email: true, what: ({ name, expiresAt }) => `The API key ${String(name)} expires at ${String(expiresAt)}` },
};

export const defaultsOf = (event: Notice): Omit<Notification, "event"> => ({ email: RULES[event].email, inApp: true });

// One event reaches so many people at most.
const MAX_RECIPIENTS = 100;
const isNotice = (type: string): type is Notice => (NOTICES as readonly string[]).includes(type);

const letterOf = (rule: Rule, tenantName: string, { data, createdAt }: DispatchedEvent): Letter => {
  const [what, tenant] = [oneLine(rule.what(data)), oneLine(tenantName)];
  return {
    subject: `${tenant}: ${what}`,
    lines: [
      `${what}.`,
      `Tenant: ${tenant}\nTime: ${createdAt.toISOString()}`,
      "You can choose in your account's notification preferences what we mail to you.",
    ],
  };
};

export interface NoticeDeps extends Pick<FeatureKit, "mails"> {
  readonly tenants: Pick<Tenants, "members" | "nameOf">;
}

export const createNoticeConsumer = ({ mails, tenants }: NoticeDeps): Consumer => {
  const recipientsOf = (tx: Tx, scope: SystemScope, { data }: DispatchedEvent, { to }: Rule): Promise<readonly Recipient[]> => {
    if (to === "administrators") return tenants.members.recipients(tx, scope, { role: { in: ["owner", "admin"] } }, MAX_RECIPIENTS);
    if (to === "owners") return tenants.members.recipients(tx, scope, { role: "owner" }, MAX_RECIPIENTS);
    return tenants.members.recipients(tx, scope, { userId: userIdOf(String(data["invitedBy"])) ?? "" }, MAX_RECIPIENTS);
  };

  const tell = async (tx: Tx, event: DispatchedEvent, type: Notice): Promise<void> => {
    const rule = RULES[type];
    const scope = { tenantId: event.tenantId as TenantId }; // as: the outbox holds nothing else
    const recipients = await recipientsOf(tx, scope, event, rule);
    if (recipients.length === 0) return;
    const tenantName = await tenants.nameOf(tx, scope);
    if (tenantName === null) return;
    const userIds = recipients.map(({ userId }) => userId);
    const profiles = await findProfiles(tx, userIds);
    const letter = letterOf(rule, tenantName, event);
    for (const { userId, email } of recipients) {
      const { email: wanted } = profiles.get(userId)?.notifications[type] ?? rule;
      if (wanted) await mails.order(tx, { ...scope, to: email, letter });
    }
  };

  return async (tx, events) => {
    if (!mails.enabled) return;
    for (const event of events) if (isNotice(event.type)) await tell(tx, event, event.type);
  };
};

// What an invited person reads.
import { type Letter, oneLine } from "../../core/ports/mail.ts";

export interface Invitation {
  readonly tenantName: string;
  readonly inviterName: string | null;
  readonly roleId: string;
  readonly message: string | null;
  readonly url: string;
  readonly expiresAt: Date;
}

export const inviteLetter = ({ tenantName, inviterName, roleId, message, url, expiresAt }: Invitation): Letter => {
  const [tenant, inviter] = [oneLine(tenantName), oneLine(inviterName ?? "An administrator")];
  return {
    subject: `${inviter} invites you to ${tenant}`,
    lines: [
      `${inviter} invites you to become a member of ${tenant} with the role ${roleId}.`,
      ...(message === null || message === "" ? [] : [`They write:\n${message}`]),
      `The link works once, until ${expiresAt.toISOString().slice(0, 16).replace("T", " ")} UTC, for you alone. If you did not expect this, ignore it.`,
    ],
    link: { label: "Read the invite", url },
  };
};

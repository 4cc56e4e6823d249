// The sentences of an invite, as the invited person reads them.
const BUILT_IN: Readonly<Record<string, string>> = {
  viewer: "a viewer, who sees everything but secrets",
  operator: "an operator, who pairs devices and sends commands",
  admin: "an administrator",
  owner: "an owner",
};

/** What became of the link, and what to do. */
const REFUSALS: ReadonlyMap<string, string> = new Map([
  ["INVITE_NOT_FOUND", "This invite does not exist, was revoked, or was sent again with a new link. Use the newest link, or ask for another invite."],
  ["INVITE_EXPIRED", "This invite has expired. Ask the person who invited you to send it again."],
  ["INVITE_ALREADY_USED", "This invite has been answered. If you accepted it, sign in and you are in."],
]);
const MISMATCHES: ReadonlyMap<string, string> = new Map([
  [
    "email_not_verified",
    "Your email address is not verified. Verify it at your identity provider, or ask the operator for a sign-in link that names it, and open this link again.",
  ],
  ["other_address", "You are signed in with another address than the invited one. Sign in with the invited address, or ask for an invite to yours."],
]);

export const text = {
  title: "Invite",
  titleOf: (tenant: string) => `Join ${tenant}`,
  noToken: "This link is not complete. Open it again from the message in which you got it, or paste all of it.",
  invites: (inviter: string | null, tenant: string) => `${inviter ?? "An administrator"} invites you to ${tenant}.`,
  role: (roleId: string) => (BUILT_IN[roleId] === undefined ? undefined : `You become ${BUILT_IN[roleId]}.`),
  address: "Invited address",
  expires: "Expires",
  message: "Message",
  signInFirst: "Sign in with the invited address to accept. You come back to this page.",
  accept: "Accept",
  decline: "Decline",
  declineTitle: "Decline this invite?",
  declineText: "The link is worth nothing then, and the person who invited you is told.",
  declined: "You have declined the invite. You can close this page.",
  refusal: (code: string | undefined) => REFUSALS.get(code ?? ""),
  mismatch: (reason: unknown) => MISMATCHES.get(String(reason)),
  signInAgain: "Sign in with another account",
} as const;

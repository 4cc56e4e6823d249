// The sentences of the sign-in.
export const text = {
  title: "Sign in",
  submit: "Sign in",
  link: "The gateway prints a link when it starts. It works once; in the folder of the gateway, this command makes another:",
  linkField: "Link, or its token",
  provider: "Sign in with your identity provider",
  elsewhere: "Sign in in a new tab, then come back: this page keeps what you typed.",
  goOn: "I have signed in",
  none: "This installation issues no sessions. Paste an access token of your identity provider; this tab keeps it until you close it.",
  tokenField: "Access token",
} as const;

const FAILURES: ReadonlyMap<string, string> = new Map([
  ["SIGN_IN_FAILED", "The link was used before or is too old, or the sign-in took too long. Start again."],
  ["SIGN_IN_NOT_CONFIGURED", "This installation does not offer this way of signing in."],
  ["IDENTITY_PROVIDER_UNAVAILABLE", "Your identity provider does not answer. Try again in a minute."],
]);
export const failureText = (code: string): string => FAILURES.get(code) ?? "The sign-in failed. Start again.";

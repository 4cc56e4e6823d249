// What counts as an installation that somebody has set up. Until then it is a first look on one machine: receivers on loopback can be tried over plain http.

type Given = Readonly<Record<string, string | undefined>>;

/** Any host name other than localhost may resolve to a public address. */
export const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);

const isGiven = (text: string): boolean => text.replaceAll(",", "").trim() !== "";
const isElsewhere = (text: string): boolean => !isLoopback(text);
const isForOthers = (text: string): boolean => !URL.canParse(text) || new URL(text).protocol === "https:" || isElsewhere(new URL(text).hostname);

/** Each of these settings, with this value, means that the installation is set up. There is no other list. */
const SIGNS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["NODE_ENV", (text: string) => text === "production"],
  ...["HOST", "INTERNAL_HOST"].map((name) => [name, isElsewhere] as const),
  ...["PUBLIC_URL", "PORTAL_URL"].map((name) => [name, isForOthers] as const),
  ...["TLS_CERT_FILE", "DATABASE_URL", "REDIS_URL", "OIDC_ISSUER", "ADMIN_USERS", "SMTP_URL", "STRIPE_SECRET_KEY", "TRUSTED_PROXIES"].map(
    (name) => [name, isGiven] as const,
  ),
]);

/** The settings that say so; empty for a first look. */
export const signsOfSetUp = (given: Given): readonly string[] =>
  [...SIGNS].flatMap(([name, says]) => {
    const text = given[name];
    return text !== undefined && text !== "" && says(text) ? [name] : [];
  });

interface Reach {
  readonly setUpBy: readonly string[];
  readonly WEBHOOK_ALLOW_CIDRS: readonly string[];
  readonly WEBHOOK_ALLOW_HTTP: boolean;
}

/** For the log at the start: what webhooks and alert channels may call, and which settings made it so. */
export const reachOf = ({ setUpBy, WEBHOOK_ALLOW_CIDRS: allowed, WEBHOOK_ALLOW_HTTP: http }: Reach): [fields: object, message: string] => [
  { setUpBy, allowed, http },
  setUpBy.length === 0
    ? "nothing is set up, so webhooks and alert channels may reach other programs of this machine, over http too"
    : `this installation is set up (${setUpBy.join(", ")}), so webhooks and alert channels reach public addresses and what you allow`,
];

// Reserved slugs: as the first label of a host name or of a path they would look like the platform itself. Only the operator can assign one.

const RESERVED: ReadonlySet<string> = new Set(
  [
    "about abuse access account accounts admin administrator agent agents alerts all api api-keys app apps assets auth authorize autoconfig autodiscover",
    "backups billing blog cdn changelog client cluster commands config console control dashboard database deployments dev devices docs domains download",
    "downloads edge email error errors events favicon files ftp gateway graphql health help home hostmaster hosts http https identity imap info install",
    "internal invite invites issuer jwks keys legal livez local localhost login logout mail main members metrics mooring noreply null oauth oidc openapi",
    "operator ops owner pairing password platform plans pop3 portal postgres postmaster pricing privacy private prod production profile proxy public ready",
    "readyz redis register relay root sandbox search secure security server service services session settings signin sign-in signout sign-out signup sign-up",
    "smtp socket sso staff staging static statistics status store support sysadmin system team tenant tenants terms test tests token tokens traces trpc",
    "tunnel tunnels undefined update updates upload user users volumes web webhook webhooks webmail webmaster websocket well-known wpad wss www",
  ].flatMap((line) => line.split(" ")),
);

/** Names with hyphens in the third and fourth place are encodings of other names (`xn--…`, RFC 5890). */
export const isReservedSlug = (slug: string): boolean => RESERVED.has(slug) || slug.slice(2, 4) === "--";

// What lets a visitor in: codes of seconds that work once, and cookies of hours. Both are signed with a key of the installation and good for one tunnel only.
import { randomBytes } from "node:crypto";
import type { Clock } from "../../../core/clock.ts";
import { createSignedValues } from "../../../core/signed-values.ts";
import type { SecretBox } from "../../../platform/keys/secrets.ts";

/** Who holds it: a member, a user of an API key, or whoever has the token. */
export type PassHolder = { readonly userId: string } | { readonly token: string };

interface Pass {
  readonly kind: "code" | "cookie";
  readonly tunnelId: string;
  readonly holder: PassHolder;
  /** Unix seconds. */
  readonly until: number;
  /** Tells two codes of one moment apart. */
  readonly nonce?: string;
}

const CODE_SECONDS = 60;
const NONCE_BYTES = 12;
export const COOKIE_SECONDS = 43_200;

export const createPasses = ({ secretBox, clock }: { readonly secretBox: Pick<SecretBox, "deriveAll">; readonly clock: Clock }) => {
  const signed = createSignedValues(secretBox, "tunnel passes");
  const now = (): number => Math.floor(clock.now().getTime() / 1_000);
  const make = (pass: Pass): string => signed.make(pass);
  const read = (given: string, kind: Pass["kind"], tunnelId: string): PassHolder | null => {
    const pass = signed.read(given) as Pass | undefined; // as: we signed it
    return pass !== undefined && pass.kind === kind && pass.tunnelId === tunnelId && pass.until > now() ? pass.holder : null;
  };
  return {
    code: (tunnelId: string, holder: PassHolder): string =>
      make({ kind: "code", tunnelId, holder, until: now() + CODE_SECONDS, nonce: randomBytes(NONCE_BYTES).toString("base64url") }),
    cookie: (tunnelId: string, holder: PassHolder): string => make({ kind: "cookie", tunnelId, holder, until: now() + COOKIE_SECONDS }),
    readCode: (given: string, tunnelId: string) => read(given, "code", tunnelId),
    readCookie: (given: string, tunnelId: string) => read(given, "cookie", tunnelId),
  };
};
export type Passes = ReturnType<typeof createPasses>;

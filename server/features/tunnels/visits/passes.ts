// What lets a visitor in: codes of seconds that work once, and cookies of hours. Both are signed with a key of the installation and good for one tunnel only.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../../core/clock.ts";
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

export const createPasses = ({ secretBox, clock }: { readonly secretBox: Pick<SecretBox, "derive">; readonly clock: Clock }) => {
  const key = secretBox.derive("tunnel passes");
  const now = (): number => Math.floor(clock.now().getTime() / 1_000);
  const sign = (text: string): Buffer => createHmac("sha256", key).update(text).digest();
  const make = (pass: Pass): string => {
    const text = Buffer.from(JSON.stringify(pass)).toString("base64url");
    return `${text}.${sign(text).toString("base64url")}`;
  };
  const read = (given: string, kind: Pass["kind"], tunnelId: string): PassHolder | null => {
    const [text = "", signature = ""] = given.split(".");
    const [made, expected] = [Buffer.from(signature, "base64url"), sign(text)];
    if (made.length !== expected.length || !timingSafeEqual(made, expected)) return null;
    const pass = JSON.parse(Buffer.from(text, "base64url").toString()) as Pass; // as: we signed it
    return pass.kind === kind && pass.tunnelId === tunnelId && pass.until > now() ? pass.holder : null;
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

// Some calls need a recent sign-in: whoever finds an open browser must not make them.
import type { Clock } from "../clock.ts";
import { AppError } from "../errors.ts";
import type { UserPrincipal } from "../scope.ts";

const MAX_SIGN_IN_AGE_SECONDS = 600;

/** Throws REAUTHENTICATION_REQUIRED unless the user has signed in within ten minutes. */
export const requireRecentSignIn = ({ authTime, session }: UserPrincipal, clock: Clock): void => {
  const signedInAt = session?.signedInAt.getTime() ?? (authTime ?? 0) * 1_000;
  if (clock.now().getTime() - signedInAt > MAX_SIGN_IN_AGE_SECONDS * 1_000)
    throw new AppError("REAUTHENTICATION_REQUIRED", { details: { maxAgeSeconds: MAX_SIGN_IN_AGE_SECONDS } });
};

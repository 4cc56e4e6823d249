// Tokens of a world's local issuer with claims that its command line would not state.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { importJWK, type JWTPayload, SignJWT } from "jose";
import type { World } from "./world.ts";

export const mintWith = async ({ dataDir }: Pick<World, "dataDir">, claims: JWTPayload): Promise<string> => {
  const jwk = JSON.parse(await readFile(join(dataDir, "signing-key.json"), "utf8"));
  return new SignJWT(claims)
    .setProtectedHeader({ alg: "EdDSA", typ: "at+jwt", kid: jwk.kid })
    .setIssuer("urn:mooring:local")
    .setAudience("mooring")
    .setIssuedAt()
    .setExpirationTime("600s")
    .sign(await importJWK(jwk, "EdDSA"));
};

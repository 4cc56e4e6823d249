// Chooses the certificate of a handshake: the parts' own by server name, else the one of EDGE_TLS_CERT_FILE. Nothing is ordered in a handshake.
import { createSecureContext, type SecureContext } from "node:tls";
import type { EdgePart } from "../core/ports/edge.ts";

export interface EdgeCertificates {
  readonly sniCallback: (serverName: string, done: (error: Error | null, context?: SecureContext) => void) => void;
  /** For visitors who name no server. */
  readonly fallback: { readonly cert: Buffer; readonly key: Buffer } | null;
  /** New handshakes use these from now on. Throws when they do not fit. */
  renew(pair: { readonly cert: Buffer; readonly key: Buffer }): void;
}

export interface CertificatesDeps {
  readonly parts: readonly EdgePart[];
  readonly pair: { readonly cert: Buffer; readonly key: Buffer } | null;
  readonly onError: (error: unknown) => void;
}

export const createCertificates = ({ parts, pair, onError }: CertificatesDeps): EdgeCertificates => {
  let current = pair === null ? undefined : createSecureContext(pair);
  const finders = parts.flatMap(({ certificateFor }) => (certificateFor === undefined ? [] : [certificateFor]));
  const find = async (serverName: string): Promise<SecureContext | undefined> => {
    for (const finder of finders) {
      const found = await finder(serverName);
      if (found !== null) return found;
    }
    return current;
  };
  return {
    sniCallback: (serverName, done) => {
      if (finders.length === 0) return done(null, current);
      find(serverName.toLowerCase()).then(
        (context) => done(null, context),
        (error: unknown) => {
          onError(error);
          done(null, current);
        },
      );
    },
    fallback: pair,
    renew: (next) => {
      current = createSecureContext(next);
    },
  };
};

/** Whether the edge speaks TLS. */
export const needsTls = (parts: readonly EdgePart[], pair: unknown): boolean =>
  pair !== null || parts.some(({ certificateFor }) => certificateFor !== undefined);

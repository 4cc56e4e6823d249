// The credentials of the clients' flows and their helpers for answers.
import { strictEqual } from "node:assert/strict";
import { type AgentIdentity, signedHeaders } from "../../protocol/index.ts";

export interface ClientCredentials {
  /** Includes the prefix. */
  readonly baseUrl: string;
  readonly token: string;
  readonly tenantId: string;
  readonly apiKey: string;
}

export const equal: (actual: unknown, expected: unknown) => void = strictEqual;

export const signed = (identity: AgentIdentity, body: string): Record<string, string> => signedHeaders(identity, body, new Date());

/** The answer of a call that must succeed. */
export const value = <T>({ data, error }: { readonly data?: T; readonly error?: unknown }): T => {
  if (data === undefined) throw new Error(`the call failed: ${JSON.stringify(error)}`);
  return data;
};

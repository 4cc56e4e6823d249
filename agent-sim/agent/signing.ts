// Signs the agent's requests with v1, or with v2, whose headers include a v1 signature.
import { type AgentIdentity, signedHeaders, signedHeadersV2 } from "../../protocol/index.ts";

export type Sign = (
  identity: AgentIdentity,
  request: { readonly method: string; readonly target: string; readonly body: string },
  now: Date,
) => Record<string, string>;

export const signer = (version: 1 | 2): Sign => (version === 2 ? signedHeadersV2 : (identity, { body }, now) => signedHeaders(identity, body, now));

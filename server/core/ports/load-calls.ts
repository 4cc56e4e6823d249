// GET calls that a load test makes of this installation, in the name of the user who started it.
import type { TenantId } from "../../../protocol/index.ts";

export interface LoadCaller {
  readonly tenantId: TenantId;
  readonly userId: string;
  readonly email: string | null;
}

export interface LoadAnswer {
  readonly status: number;
  /** The error code; null for a success. */
  readonly code: string | null;
}

export interface LoadCalls {
  /** The operation that answers this path and query; null for one that a load test may not call. */
  operationOf(target: string): string | null;
  /** Takes the way of a call over HTTP but for the socket and the caller's rate limits. The caller's authority is checked each time. Never rejects. */
  get(caller: LoadCaller, target: string): Promise<LoadAnswer>;
}

// The router type around the contract's procedures. It does not import zod, so @mooring/client ships this file unchanged.
import type { TRPCBuiltRouter, TRPCDefaultErrorShape, TRPCRouterRecord } from "@trpc/server";

/** `error.data.app` of a tRPC error: the same fields as in a REST error body. */
export interface ErrorFacts<Code extends string> {
  /** A newer gateway may send codes that this version does not list, so keep a default branch. */
  readonly code: Code;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  readonly timestamp: string;
  /** Identifies the call in the gateway's log. */
  readonly requestId: string;
  /** Seconds to wait before the next try. */
  readonly retryAfter?: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Items of a subscription: the `data`, and in `id` the position to resume after. */
export type Stream<Item> = AsyncIterable<{ id: string; data: Item }, void>;

export type RouterOf<Procedures extends TRPCRouterRecord, Code extends string> = TRPCBuiltRouter<
  { ctx: object; meta: object; errorShape: TRPCDefaultErrorShape & { data: { app: ErrorFacts<Code> } }; transformer: false },
  Procedures
>;

// The router type around the contract's procedures. Free of zod, so that the package for portals carries this file as it is.
import type { TRPCBuiltRouter, TRPCDefaultErrorShape, TRPCRouterRecord } from "@trpc/server";

/** What an error carries in `error.data.app` on the tRPC side: the same facts as the REST body. */
export interface ErrorFacts<Code extends string> {
  /** A newer gateway may send codes that this version does not list: keep a default branch. */
  readonly code: Code;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  readonly timestamp: string;
  /** Finds the call in the gateway's log. */
  readonly requestId: string;
  /** Seconds to wait before the next try. */
  readonly retryAfter?: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** What a subscription yields: `data`, and in `id` the position to resume behind. */
export type Stream<Item> = AsyncIterable<{ id: string; data: Item }, void>;

export type RouterOf<Procedures extends TRPCRouterRecord, Code extends string> = TRPCBuiltRouter<
  { ctx: object; meta: object; errorShape: TRPCDefaultErrorShape & { data: { app: ErrorFacts<Code> } }; transformer: false },
  Procedures
>;

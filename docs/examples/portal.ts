import { createTRPCClient, httpBatchLink, httpSubscriptionLink, retryLink, splitLink, type TRPCClient } from "@trpc/client";
import type { AppRouter } from "../../protocol/index.ts";

export const connect = (baseUrl: string, token: () => string): TRPCClient<AppRouter> => {
  const url = `${baseUrl}/trpc`;
  let waitMs = 0;
  const mooring: TRPCClient<AppRouter> = createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: ({ type }) => type === "subscription",
        true: [
          // A ticket opens one stream. After a cut this asks for another and resumes behind the last event.
          retryLink({
            retry: ({ error }) => {
              const app = error.data?.app;
              waitMs = 1_000 * (app?.retryAfter ?? 1);
              return app === undefined || app.retryable || app.details?.["reason"] === "ticket_invalid";
            },
            retryDelayMs: () => waitMs * (0.5 + Math.random()),
          }),
          httpSubscriptionLink({
            url,
            connectionParams: async () => ({ ticket: (await mooring.general.streamTicket.mutate({})).ticket }),
          }),
        ],
        false: httpBatchLink({ url, headers: () => ({ authorization: `Bearer ${token()}` }) }),
      }),
    ],
  });
  return mooring;
};

import type { AppRouter } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { createTRPCContext } from "@trpc/tanstack-react-query";

/** Give `TRPCProvider` the client of `createMooring` as `trpcClient`. */
export const { TRPCProvider, useTRPC } = createTRPCContext<AppRouter>();

export const useDevices = () => useQuery(useTRPC().devices.list.queryOptions({ status: "online" }));

// Commands that ended lately: read once when the page or its stream of events begins, so that the chart and the feed do not begin empty.
import { useQuery } from "@tanstack/react-query";
import { mooring } from "../../api/client.ts";
import { FIRST } from "../../api/list-start.ts";
import { gatewayNow } from "../../ui/clock.ts";

/** Longer than the chart, because a command may have been queued some time before it ended. */
const SINCE_MS = 5 * 60_000;

const read = async (signal: AbortSignal) => {
  const { items, nextCursor } = await mooring.commands.listPartial.query(
    {
      fields: ["deviceId", "deviceName", "type", "status", "failureCode", "finishedAt"],
      open: false,
      since: new Date(gatewayNow() - SINCE_MS).toISOString(),
      pageSize: 500,
      cursor: FIRST,
    },
    { signal },
  );
  return { items, isComplete: nextCursor === undefined };
};
export type Ended = Awaited<ReturnType<typeof read>>;

/** Not one of the tRPC queries, which every event of a command would make read again. */
export const useEnded = (enabled: boolean) =>
  useQuery({ queryKey: ["ended"], queryFn: ({ signal }) => read(signal), enabled, staleTime: 0, refetchInterval: false });

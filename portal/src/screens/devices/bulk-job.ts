// A change of many selected devices as one bulk job: it goes on when the page is closed, and keeps a result for each device.
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { mooring } from "../../api/client.ts";
import { idsFromStart } from "../../api/list-start.ts";
import { given } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import type { Selection } from "../../ui/list/selection.ts";

/** Fewer are done while the person watches, with the reason of each failure beside its row. */
const FROM = 101;
const MAX_IDS = 10_000;
const PAGE = 500;

type Query = Parameters<typeof mooring.devices.list.query>[0];
type Creation = Parameters<typeof mooring.bulkOperations.create.mutate>[0];
export type Change = Pick<Creation, "operation" | "params">;

/** The filters as a selector of the gateway; null: they say more than a selector can. */
const selectorOf = ({ sort: _, tag = [], platform, agentVersion, status, ...others }: Query) => {
  const isAlone = Object.values(others).every((value) => value === undefined);
  if (!isAlone || [...tag, platform, agentVersion, status].every((each) => each === undefined)) return null;
  return { tags: [...tag], ...given({ platform, agentVersion, status }) };
};

/** The ids of all that match, but those that are not selected. */
const idsOf = (query: Query, but: ReadonlySet<string>): Promise<string[]> =>
  idsFromStart((cursor) => mooring.devices.list.query({ ...query, sort: "createdAt", cursor, pageSize: PAGE }), {
    idOf: ({ deviceId }) => deviceId,
    but,
    most: MAX_IDS,
  });

const targetOf = async ({ all, ids }: Selection, query: Query): Promise<Creation["target"]> => {
  if (!all) return { deviceIds: [...ids] as NonNullable<Creation["target"]["deviceIds"]> }; // as: ids of the list
  const selector = ids.size === 0 ? selectorOf(query) : null;
  if (selector !== null) return { selector };
  return { deviceIds: (await idsOf(query, ids)) as NonNullable<Creation["target"]["deviceIds"]> }; // as: ids of the list
};

/** `isMany`: enough devices for a job, and the person may make one. */
export const useBulkJob = (selection: Selection, total: number, query: Query) => {
  const may = useMay();
  const navigate = useNavigate();
  const job = useMutation({
    mutationFn: async (change: Change) => mooring.bulkOperations.create.mutate({ ...change, target: await targetOf(selection, query) }),
    onSuccess: async ({ operationId }) => {
      await navigate({ to: "/bulk/$operationId", params: { operationId } });
    },
  });
  const isMany = selection.count(total) >= FROM && may("bulk:write");
  return { isMany, start: (change: Change): void => job.mutate(change), isPending: job.isPending, error: job.error };
};

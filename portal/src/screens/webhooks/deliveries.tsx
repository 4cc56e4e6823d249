// What a webhook has sent and what it will, newest first, with the chosen delivery beside the list.
import type { LiveEvent, Webhook, WebhookDelivery } from "@mooring/client";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useEvents } from "../../api/events.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { given } from "../../api/search.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/filter-bar.tsx";
import { Empty, Loaded } from "../../ui/parts.tsx";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { Delivery } from "./delivery.tsx";
import { useEventTypes } from "./events-field.tsx";
import { useRemains } from "./remains.ts";
import { readDeliverySearch, STATUSES } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/webhooks/$webhookId");

const COLUMNS: readonly Column<WebhookDelivery>[] = [
  { title: "State", width: "112px", phone: true, cell: ({ status }) => <Status status={status} /> },
  { title: "Event", width: "minmax(0, 1.4fr)", phone: true, cell: ({ eventType }) => <code>{eventType}</code> },
  { title: "Subject", width: "minmax(0, 1.4fr)", cell: ({ subjectId }) => <span className="mono muted">{subjectId}</span> },
  { title: "Attempts", width: "76px", cell: ({ attemptCount }) => attemptCount },
  { title: "Next", width: AGO_WIDTH, cell: ({ nextAttemptAt }) => (nextAttemptAt === null ? null : <Ago at={nextAttemptAt} />) },
  { title: "Created", width: AGO_WIDTH, phone: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];
/** Beside an open delivery. */
const FEWER = COLUMNS.filter(({ phone }) => phone === true);

const READ_AGAIN_MS = 1_000;
const OPEN_MS = 2_000;
const CALM_MS = 30_000;
/** Attempts have no events of their own, so what is still to be sent is read again. */
const paceOf = (deliveries: readonly Pick<WebhookDelivery, "status">[]): number =>
  deliveries.some(({ status }) => status === "pending" || status === "retrying") ? OPEN_MS : CALM_MS;

let isWaiting = false;
/** What happens in the tenant is what may be delivered a moment later. */
const readAgainSoon = (events: readonly LiveEvent[]): void => {
  if (isWaiting || events.every(({ id }) => id === null)) return;
  isWaiting = true;
  setTimeout(() => {
    isWaiting = false;
    for (const read of [api.webhooks.listDeliveries, api.webhooks.get]) void queryClient.invalidateQueries(read.pathFilter(), { cancelRefetch: false });
  }, READ_AGAIN_MS);
};

interface Pages {
  readonly state: { readonly data?: { readonly pages: readonly { readonly items: readonly WebhookDelivery[] }[] } | undefined };
}

export const Deliveries = ({ of: webhook }: { readonly of: Webhook }) => {
  const { webhookId } = webhook;
  const { delivery, ...filters } = route.useSearch();
  const { status, type: eventType } = filters;
  const navigate = useNavigate();
  const list = useCursorList<WebhookDelivery>({
    ...api.webhooks.listDeliveries.infiniteQueryOptions({ webhookId, ...given({ status, eventType }), pageSize: PAGE_SIZE }, fromCursor),
    enabled: useRemains(),
    refetchInterval: ({ state }: Pages) => paceOf(state.data?.pages.flatMap(({ items }) => items) ?? []),
  });
  useEvents(readAgainSoon);
  const types = useEventTypes().data;
  const keys = useMemo(
    (): readonly FilterKey[] => [
      { key: "status", name: "status", values: STATUSES },
      { key: "type", name: "type", values: types?.items.map(({ name }) => name) ?? [] },
    ],
    [types],
  );
  const go = useCallback(
    (search: ReturnType<typeof readDeliverySearch>, replace = false): void =>
      void navigate({ to: "/webhooks/$webhookId", params: { webhookId }, search, replace }),
    [navigate, webhookId],
  );
  const setFilters = useCallback((next: Filters): void => go(readDeliverySearch({ ...next, delivery }), true), [go, delivery]);
  const open = (deliveryId?: string): void => go(readDeliverySearch({ status, type: eventType, delivery: deliveryId }));
  const close = useCallback((): void => go(readDeliverySearch({ status, type: eventType })), [go, status, eventType]);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <h2>{text.deliveries}</h2>
      <FilterBar label={text.filter} example="" keys={keys} filters={filters} onChange={setFilters} />
      <Split
        onClose={close}
        detail={delivery === undefined ? null : <Delivery key={delivery} webhook={webhook} deliveryId={delivery} onClose={close} />}
        list={
          <Loaded read={list.read} rows={8}>
            {() =>
              list.count > 0 ? (
                <Table
                  label={text.deliveries}
                  columns={delivery === undefined ? COLUMNS : FEWER}
                  {...list}
                  id={({ deliveryId }) => deliveryId}
                  onOpen={({ deliveryId }) => open(deliveryId)}
                  opened={delivery}
                  fill
                />
              ) : (
                <Empty
                  action={
                    isFiltered ? (
                      <button type="button" onClick={() => setFilters({})}>
                        {text.clear}
                      </button>
                    ) : undefined
                  }
                >
                  {isFiltered ? text.noMatch : text.noDeliveries}
                </Empty>
              )
            }
          </Loaded>
        }
      />
    </>
  );
};

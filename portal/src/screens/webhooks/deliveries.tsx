// What a webhook has sent and what it will, newest first, with the chosen delivery beside the list.
import type { Webhook, WebhookDelivery } from "@mooring/client";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { isStored, type ReadAgain, useReadAgain } from "../../api/read-again.ts";
import { given, oneOf } from "../../api/search.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { Delivery } from "./delivery.tsx";
import { useEventTypes } from "./events-field.tsx";
import { useRemains } from "./remains.ts";
import { readDeliverySearch } from "./search.ts";
import { text } from "./text.ts";

const STATUSES = ["pending", "retrying", "succeeded", "exhausted", "blocked", "cancelled"] as const;
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

const OPEN_MS = 2_000;
const CALM_MS = 30_000;
/** Attempts have no events of their own, so what is still to be sent is read again. */
const paceOf = (deliveries: readonly Pick<WebhookDelivery, "status">[]): number =>
  deliveries.some(({ status }) => status === "pending" || status === "retrying") ? OPEN_MS : CALM_MS;

/** What happens in the tenant is what may be delivered a moment later. */
const READ_AGAIN: ReadAgain = {
  after: isStored,
  reads: [api.webhooks.listDeliveries.pathFilter(), api.webhooks.get.pathFilter()],
  waitMs: () => 1_000,
};

interface Pages {
  readonly state: { readonly data?: { readonly pages: readonly { readonly items: readonly WebhookDelivery[] }[] } | undefined };
}

export const Deliveries = ({ of: webhook }: { readonly of: Webhook }) => {
  const { webhookId } = webhook;
  const { delivery, status: named, type } = route.useSearch();
  const filters = given({ type, status: oneOf(named, STATUSES) });
  const { status, type: eventType } = filters;
  const navigate = useNavigate();
  const list = useCursorList<WebhookDelivery>({
    ...api.webhooks.listDeliveries.infiniteQueryOptions({ webhookId, ...given({ status, eventType }), pageSize: PAGE_SIZE }, fromCursor),
    enabled: useRemains(),
    refetchInterval: ({ state }: Pages) => paceOf(state.data?.pages.flatMap(({ items }) => items) ?? []),
  });
  useReadAgain(READ_AGAIN);
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
  return (
    <>
      <h2>{text.deliveries}</h2>
      <FilterBar label={text.filter} example="" keys={keys} filters={filters} onChange={setFilters} />
      <Split
        onClose={close}
        detail={delivery === undefined ? null : <Delivery key={delivery} webhook={webhook} deliveryId={delivery} onClose={close} />}
        list={
          <FilteredList
            label={text.deliveries}
            columns={delivery === undefined ? COLUMNS : FEWER}
            list={list}
            rows={8}
            id={({ deliveryId }) => deliveryId}
            onOpen={({ deliveryId }) => open(deliveryId)}
            opened={delivery}
            filters={filters}
            onClear={() => setFilters({})}
            noMatch={text.noMatch}
            none={text.noDeliveries}
          />
        }
      />
    </>
  );
};

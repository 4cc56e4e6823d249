// One bulk job: how far it is, why it stands, and what became of each item.
import type { BulkItem, BulkOperation } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { identifierInWords } from "../../../../protocol/kit/identifier-words.ts";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { oneOf } from "../../api/search.ts";
import { actorText } from "../../parts/text.ts";
import { numbers } from "../../ui/count.ts";
import { DetailPage, Pill } from "../../ui/detail-page.tsx";
import { Figure, Figures } from "../../ui/figures.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Copyable, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status, toneOf } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { BulkActions } from "./actions.tsx";
import type { BulkSearch } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/bulk/$operationId");
type BulkItemsOf = BulkOperation["operationId"];
/** Its counts change with every step, and no event tells of each. */
const REREAD_MS = 2_000;

const Target = ({ id, name }: { readonly id: string; readonly name: string | null }) => {
  if (id.startsWith("dev_"))
    return (
      <Link to="/devices/$deviceId" params={{ deviceId: id }} tabIndex={-1}>
        {name ?? id}
      </Link>
    );
  if (id.startsWith("app_"))
    return (
      <Link to="/apps/$appId" params={{ appId: id }} tabIndex={-1}>
        {name ?? id}
      </Link>
    );
  return name ?? id;
};

const COLUMNS: readonly Column<BulkItem>[] = [
  { title: "#", width: "70px", cell: ({ n }) => numbers.format(n) },
  { title: text.target, width: "minmax(140px, 2fr)", phone: true, cell: ({ targetId, name }) => <Target id={targetId} name={name} /> },
  { title: text.state, width: "130px", phone: true, cell: ({ status }) => <Status status={status} word={text.counts[status]} /> },
  { title: text.code, width: "minmax(100px, 2fr)", phone: true, cell: ({ code, message }) => <span title={message ?? undefined}>{code}</span> },
  { title: text.ended, width: AGO_WIDTH, cell: ({ finishedAt }) => (finishedAt === null ? null : <Ago at={finishedAt} />) },
];

const SHOWS = ["all", "failed", "running", "pending", "skipped", "succeeded", "cancelled"] as const;
const Items = ({ operationId, search: { items } }: { readonly operationId: BulkItemsOf; readonly search: BulkSearch }) => {
  const show = oneOf(items, SHOWS) ?? "all";
  const navigate = useNavigate();
  const query = { operationId, pageSize: PAGE_SIZE, ...(show === "all" ? {} : { status: [show] }) };
  const list = useCursorList<BulkItem>(api.bulkOperations.listItems.infiniteQueryOptions(query, fromCursor));
  const open = ({ targetId, commandId }: BulkItem): void => {
    if (targetId.startsWith("dev_"))
      void navigate({ to: "/devices/$deviceId", params: { deviceId: targetId }, search: commandId === null ? {} : { command: commandId } });
    else if (targetId.startsWith("app_")) void navigate({ to: "/apps/$appId", params: { appId: targetId } });
  };
  return (
    <Panel
      title={text.items}
      beside={
        <select
          aria-label={text.state}
          value={show}
          onChange={({ target }) =>
            void navigate({
              to: "/bulk/$operationId",
              params: { operationId },
              search: { items: SHOWS.find((each) => each === target.value) ?? "all" },
              replace: true,
            })
          }
        >
          {SHOWS.map((each) => (
            <option key={each} value={each}>
              {text.shows[each]}
            </option>
          ))}
        </select>
      }
    >
      <List label={text.items} columns={COLUMNS} list={list} fill={false} rows={10} id={({ n }) => String(n)} onOpen={open} none={text.noItems} />
    </Panel>
  );
};

const REASONS: ReadonlyMap<string, string> = new Map(Object.entries(text.reasons));
const reasonOf = (reason: string): string => REASONS.get(reason) ?? identifierInWords(reason);

export const BulkScreen = () => {
  const { operationId } = route.useParams();
  const search = route.useSearch();
  const read = useQuery({
    ...api.bulkOperations.get.queryOptions({ operationId }),
    refetchInterval: ({ state }) => (state.data?.completedAt == null ? REREAD_MS : false),
  });
  const job = read.data;
  return (
    <DetailPage
      path={[
        <Link key="bulk" to="/bulk">
          {text.title}
        </Link>,
      ]}
      title={job === undefined ? text.one : (job.name ?? text.operations[job.operation])}
      pill={job === undefined ? undefined : <Pill tone={toneOf(job.status)}>{text.states[job.status]}</Pill>}
      actions={job === undefined ? undefined : <BulkActions of={job} />}
    >
      <Loaded read={read}>
        {({ counts, status, statusReason, lastError, ...rest }) => (
          <>
            {statusReason === null ? null : (
              <Notice tone={status === "paused" ? "warn" : "bad"} title={text.states[status]}>
                {reasonOf(statusReason)}
              </Notice>
            )}
            {lastError === null ? null : (
              <Notice tone="bad" title={text.stuck}>
                {lastError}
              </Notice>
            )}
            <Figures label={text.progress}>
              {(["succeeded", "running", "pending", "failed", "skipped", "cancelled"] as const).map((each) => (
                <Figure
                  key={each}
                  name={text.counts[each]}
                  value={numbers.format(counts[each])}
                  beside={each === "succeeded" ? text.of(counts.total) : undefined}
                  link={{ to: "/bulk/$operationId", params: { operationId }, search: { items: each } }}
                />
              ))}
            </Figures>
            {status === "freezing" ? <p className="muted">{text.notYet}</p> : null}
            <Items operationId={operationId as BulkItemsOf} search={search} />
            <Panel title={text.about}>
              <Facts
                of={{
                  Id: <Copyable text={rest.operationId} />,
                  [text.job]: text.operations[rest.operation],
                  Targets: text.targets[rest.target.kind],
                  [text.madeBy]: actorText(rest.actor),
                  [text.created]: <Ago at={rest.createdAt} />,
                  ...(rest.startAt === null ? {} : { [text.startsAt]: <Ago at={rest.startAt} /> }),
                  ...(rest.completedAt === null ? { [text.expires]: <Ago at={rest.expiresAt} /> } : { [text.ended]: <Ago at={rest.completedAt} /> }),
                  ...(rest.failureThreshold === null ? {} : { Threshold: text.threshold(rest.failureThreshold.percent) }),
                  ...(rest.rate === null ? {} : { Rate: text.rate(rest.rate.perMinute) }),
                  ...(rest.retryOf === null
                    ? {}
                    : {
                        [text.retries]: (
                          <Link to="/bulk/$operationId" params={{ operationId: rest.retryOf }}>
                            {rest.retryOf}
                          </Link>
                        ),
                      }),
                }}
              />
            </Panel>
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};

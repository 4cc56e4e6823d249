// The commands of all devices: what is stuck anywhere, since when, and why.
import type { CommandSummary } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { STATUSES } from "../../parts/command.ts";
import { CODE, LASTED, QUEUED, STATUS, TYPE } from "../../parts/command-columns.tsx";
import { CommandPanel } from "../../parts/command-panel.tsx";
import { actorText } from "../../parts/text.ts";
import { COMMAND_VIEWS, SaveView, ViewTabs } from "../../parts/views.tsx";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Split } from "../../ui/split.tsx";
import { AGO_WIDTH } from "../../ui/time.tsx";
import { Counts } from "./counts.tsx";
import { type CommandSearch, readCommandSearch, SHOWS } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/commands");

const DEVICE: Column<CommandSummary> = {
  title: "Device",
  width: "minmax(60px, 2fr)",
  phone: true,
  cell: ({ deviceId, deviceName }) => (
    // The row opens its command; the table stays one stop of the Tab key.
    <Link to="/devices/$deviceId" params={{ deviceId }} tabIndex={-1} onClick={(event) => event.stopPropagation()}>
      {deviceName ?? deviceId}
    </Link>
  ),
};
const BY: Column<CommandSummary> = { title: "By", width: "minmax(80px, 1.5fr)", cell: ({ actor }) => actorText(actor) };
/** A phone has room for three. */
const SINCE: Column<CommandSummary> = { title: QUEUED.title, width: AGO_WIDTH, cell: QUEUED.cell };
const NARROW: readonly Column<CommandSummary>[] = [TYPE, STATUS, DEVICE, SINCE];
const WIDE: readonly Column<CommandSummary>[] = [TYPE, STATUS, DEVICE, CODE, LASTED, BY, SINCE];

const SHOWN = {
  open: { open: true, order: "oldest" },
  blocked: { blocked: true, order: "oldest" },
  ended: { open: false },
  all: {},
} as const;

/** The filters as the API takes them; a state that this gateway does not know is left out. */
const queryOf = ({ show, status, type, createdBy, deviceId }: CommandSearch) => {
  const statuses = STATUSES.filter((each) => status?.split(",").includes(each));
  return {
    ...SHOWN[show ?? (statuses.length > 0 ? "all" : "open")],
    ...(statuses.length > 0 ? { status: statuses } : {}),
    ...(type === undefined ? {} : { type }),
    ...(createdBy === undefined ? {} : { createdBy }),
    ...(deviceId === undefined ? {} : { deviceId }),
  };
};

const useFilterKeys = (): readonly FilterKey[] => {
  const types = useQuery({ ...api.commands.types.queryOptions({}), staleTime: 600_000, refetchInterval: false }).data;
  return useMemo(
    () => [
      { key: "show", name: "show", values: SHOWS },
      { key: "status", name: "status", values: STATUSES, several: true },
      { key: "type", name: "type", values: types?.items.map(({ type }) => type) ?? [] },
      { key: "device", name: "deviceId" },
      { key: "by", name: "createdBy" },
    ],
    [types],
  );
};

const CommandList = ({
  search,
  onShow,
  onAll,
}: {
  readonly search: CommandSearch;
  readonly onShow: (commandId: string) => void;
  readonly onAll: () => void;
}) => {
  const list = useCursorList<CommandSummary>(api.commands.listAll.infiniteQueryOptions({ ...queryOf(search), pageSize: PAGE_SIZE }, fromCursor));
  const { command, ...filters } = search;
  const isDefault = Object.keys(filters).length === 0;
  return (
    <List
      label={text.title}
      columns={command === undefined ? WIDE : NARROW}
      list={list}
      id={({ commandId }) => commandId}
      onOpen={({ commandId }) => onShow(commandId)}
      opened={command}
      none={isDefault ? text.noneOpen : text.noMatch}
      action={
        isDefault ? (
          <button type="button" onClick={onAll}>
            {text.showAll}
          </button>
        ) : (
          <Link to="/commands">{text.clear}</Link>
        )
      }
    />
  );
};

export const CommandsScreen = () => {
  const search = route.useSearch();
  const navigate = useNavigate();
  const keys = useFilterKeys();
  const { command, ...filters } = search;
  const setFilters = useCallback(
    (next: Filters) => void navigate({ to: "/commands", search: ({ command: chosen }) => readCommandSearch({ ...next, command: chosen }), replace: true }),
    [navigate],
  );
  const show = useCallback(
    (commandId?: string) =>
      void navigate({ to: "/commands", search: ({ command: _, ...same }) => (commandId === undefined ? same : { ...same, command: commandId }) }),
    [navigate],
  );
  const close = useCallback(() => show(), [show]);
  return (
    <Page title={text.title} fill tabs={<ViewTabs of={COMMAND_VIEWS} filters={filters} />}>
      <Counts />
      <FilterBar
        label={text.filter}
        example=""
        keys={keys}
        filters={filters}
        onChange={setFilters}
        beside={<SaveView of={COMMAND_VIEWS} filters={filters} />}
      />
      <Split
        onClose={close}
        list={<CommandList search={search} onShow={show} onAll={() => setFilters({ show: "all" })} />}
        detail={
          command === undefined ? null : (
            <CommandPanel
              key={command}
              commandId={command}
              onClose={close}
              link={(ahead, words) => (
                <Link to="/commands" search={{ ...search, command: ahead }}>
                  {words}
                </Link>
              )}
              about={({ command: { deviceId, deviceName } }) => (
                <span>
                  {text.device}{" "}
                  <Link to="/devices/$deviceId" params={{ deviceId }} search={{ command }}>
                    {deviceName ?? deviceId}
                  </Link>
                </span>
              )}
            />
          )
        }
      />
    </Page>
  );
};

// The volumes of all devices: where the data of apps is, and what belongs to no app any more.
import type { VolumeInfo } from "@mooring/client";
import { keepPreviousData } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { given, oneOf } from "../../api/search.ts";
import { useDeviceNames } from "../../parts/device-names.ts";
import { VolumeList } from "../../parts/volumes/volume-list.tsx";
import { text } from "../../parts/volumes/volume-text.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { Page } from "../../ui/parts.tsx";
import { readVolumeSearch } from "./search.ts";

const route = getRouteApi("/backups/volumes");

const OWNERS = ["nothing", "apps"] as const;
const SORTS = ["name", "-size", "-firstSeenAt"] as const;
const KEYS: readonly FilterKey[] = [
  { key: "of", name: "of", values: OWNERS },
  { key: "device", name: "deviceId" },
  { key: "sort", name: "sort", values: SORTS },
];

export const VolumesScreen = () => {
  const search = route.useSearch();
  const navigate = useNavigate();
  const of = oneOf(search.of, OWNERS);
  const filters = given({ q: search.q, deviceId: search.deviceId, of, sort: oneOf(search.sort, SORTS) });
  const { of: _, ...others } = filters;
  const orphaned = of === undefined ? undefined : of === "nothing";
  const list = usePages<VolumeInfo>((page) =>
    api.volumes.list.queryOptions({ ...others, ...given({ orphaned }), page, pageSize: PAGE_SIZE }, { placeholderData: keepPreviousData }),
  );
  const nameOf = useDeviceNames(list);
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/backups/volumes", search: readVolumeSearch(next), replace: true }), [navigate]);
  const isFiltered = Object.keys(filters).some((name) => name !== "sort");
  return (
    <Page title={text.title} fill beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>}>
      <FilterBar label="Filter volumes" keys={KEYS} filters={filters} onChange={setFilters} />
      <VolumeList
        list={list}
        deviceOf={nameOf}
        none={isFiltered ? "No volume matches these filters." : text.none}
        action={
          isFiltered ? (
            <button type="button" onClick={() => setFilters({})}>
              Clear filters
            </button>
          ) : undefined
        }
      />
    </Page>
  );
};

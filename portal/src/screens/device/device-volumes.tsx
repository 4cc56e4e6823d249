// The volumes of a device, the largest first, and the button that lets it look again.
import type { VolumeInfo } from "@mooring/client";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { LookAgain, VolumeList } from "../../parts/volumes/volume-list.tsx";
import { text } from "../../parts/volumes/volume-text.ts";

export const DeviceVolumes = ({ deviceId }: { readonly deviceId: string }) => {
  const list = usePages<VolumeInfo>((page) => api.volumes.list.queryOptions({ deviceId, sort: "-size", page, pageSize: PAGE_SIZE }));
  return (
    <>
      <LookAgain deviceId={deviceId} />
      <VolumeList list={list} none={text.noneOfDevice} />
    </>
  );
};

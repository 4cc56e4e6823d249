// The names of the devices that a list mentions, read in one call.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api } from "../api/client.ts";
import { useMay } from "../api/session.ts";
import { deviceLabel } from "../ui/device-label.ts";

const MAX_IDS = 200;

interface Rows<R> {
  readonly count: number;
  readonly row: (index: number) => R | undefined;
}
interface OnDevice {
  readonly deviceId: string | null;
}

/** Answers with the id while the name is not known. */
export const useDeviceNames = <R extends OnDevice>({ count, row }: Rows<R>): ((deviceId: string) => string) => {
  const may = useMay();
  const found = Array.from({ length: count }, (_, index) => row(index)?.deviceId).filter((id) => id != null);
  const ids = [...new Set(found)].sort().slice(0, MAX_IDS);
  const read = useQuery({
    ...api.devices.getMany.queryOptions({ ids }, { placeholderData: keepPreviousData, staleTime: 60_000 }),
    enabled: ids.length > 0 && may("device:read"),
  });
  const names = new Map(read.data?.items.map((device) => [device.deviceId as string, deviceLabel(device)]));
  return (deviceId) => names.get(deviceId) ?? deviceId;
};

// What the overview reads of a fleet that is small enough to be shown as a whole.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";

/** Beyond so many devices, people look for groups of them, not for one app. */
export const SMALL = 12;
const APPS = 100;

export const useDevices = () => useQuery(api.devices.list.queryOptions({ sort: "status,name", pageSize: SMALL }));
export const useApps = (enabled = true) => useQuery({ ...api.apps.list.queryOptions({ sort: "name", pageSize: APPS }), enabled });

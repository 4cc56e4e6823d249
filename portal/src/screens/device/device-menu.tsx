// What people do with a device less often, in the menu of its page.
import type { Device } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { itemClass, MenuItem } from "../../ui/menu-items.tsx";
import css from "./device.module.css";
import { text } from "./text.ts";

const CHANGES = ["device:update", "device:secrets:rotate", "device:disconnect", "device:delete"];
export const useMayChange = (): boolean => CHANGES.some(useMay());

interface DeviceMenuProps {
  readonly device: Device;
  readonly onPing: (() => void) | null;
}
export const DeviceMenu = ({ device: { deviceId, version, maintenance }, onPing }: DeviceMenuProps) => {
  const may = useMay();
  const mayChange = useMayChange();
  const navigate = useNavigate();
  const isInMaintenance = maintenance?.enabled === true;
  const update = useMutation({
    ...api.devices.update.mutationOptions(),
    onSuccess: () => queryClient.invalidateQueries(api.devices.pathFilter()),
    // Somebody has changed it in between, and the settings tell how.
    onError: () => navigate({ to: "/devices/$deviceId", params: { deviceId }, search: { tab: "settings" } }),
  });
  const settings = (words: ReactNode) => (
    <Link to="/devices/$deviceId" params={{ deviceId }} search={{ tab: "settings" }} role="menuitem" tabIndex={-1} className={itemClass}>
      {words}
    </Link>
  );
  return (
    <>
      {onPing === null ? null : <MenuItem onChoose={onPing}>{text.ping}</MenuItem>}
      {may("device:update") ? (
        <MenuItem onChoose={() => update.mutate({ deviceId, version, maintenance: isInMaintenance ? null : { enabled: true } })}>
          {isInMaintenance ? text.endMaintenance : text.beginMaintenance}
        </MenuItem>
      ) : null}
      {mayChange ? settings(text.change) : null}
      {may("device:delete") ? settings(<span className={css["danger"]}>{text.remove}…</span>) : null}
    </>
  );
};

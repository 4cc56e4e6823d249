// A square for each device.
import { getRouteApi, Link, useNavigate, useRouter } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { type SquareGroup, Squares } from "../../ui/charts/squares.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { type Tone, toneOf } from "../../ui/status.tsx";
import { type FleetDevice, useFleet } from "./fleet.ts";
import { FIRST_TAG, groupDevices, TOGETHER, usualGrouping } from "./groups.ts";
import { text } from "./text.ts";

const route = getRouteApi("/");

const squareOf = ({ status = "provisioning", ...device }: FleetDevice) => ({
  id: device.deviceId,
  name: deviceLabel(device),
  word: text.states[status],
  tone: (status === "provisioning" ? "idle" : toneOf(status)) satisfies Tone,
});

const nameOf = (tag: string | null, by: string): string => {
  if (tag === null) return by === TOGETHER ? text.devices.title : by === FIRST_TAG ? text.devices.untagged : text.devices.without(by);
  return by === FIRST_TAG ? tag : tag.slice(by.length + 1);
};

const Groups = ({ devices, by }: { readonly devices: readonly FleetDevice[]; readonly by: string }) => {
  const navigate = useNavigate();
  const router = useRouter();
  const href = useCallback((deviceId: string) => router.buildLocation({ to: "/devices/$deviceId", params: { deviceId } }).href, [router]);
  const groups = useMemo(
    () =>
      groupDevices(devices, by).map(({ tag, devices: members }): SquareGroup => {
        const name = nameOf(tag, by);
        const search = tag === null ? {} : { tag };
        return {
          id: tag ?? "",
          name,
          head:
            tag === null && by !== TOGETHER ? (
              <strong>{name}</strong>
            ) : (
              <Link to="/devices" search={search}>
                {name}
              </Link>
            ),
          squares: members.map(squareOf),
        };
      }),
    [devices, by],
  );
  return (
    <Squares label={text.devices.title} groups={groups} href={href} onOpen={(deviceId) => void navigate({ to: "/devices/$deviceId", params: { deviceId } })} />
  );
};

export const FleetPanel = ({ total }: { readonly total: number | undefined }) => {
  const { group } = route.useSearch();
  const fleet = useFleet(true);
  return (
    <Panel title={text.devices.title}>
      <Loaded read={fleet} rows={4}>
        {(known) => (
          <>
            <Groups devices={known} by={group ?? usualGrouping(known)} />
            {total !== undefined && total > known.length ? <p className="muted">{text.devices.firstOf(known.length)}</p> : null}
          </>
        )}
      </Loaded>
    </Panel>
  );
};

// A square for each device.
import { getRouteApi, Link, useNavigate, useRouter } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { type SquareGroup, Squares } from "../../ui/charts/squares.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { type Tone, toneOf } from "../../ui/status.tsx";
import { type FleetDevice, useFleet } from "./fleet.ts";
import { FIRST_TAG, groupDevices, TOGETHER, tagKeys, usualGrouping } from "./groups.ts";
import css from "./overview.module.css";
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
  const navigate = useNavigate();
  const fleet = useFleet(true);
  const devices = fleet.data ?? [];
  const keys = tagKeys(devices);
  const by = group ?? usualGrouping(devices);
  const options = [...new Set([TOGETHER, ...keys, FIRST_TAG, by])];
  const wordOf = (each: string): string => (each === TOGETHER ? text.devices.together : each === FIRST_TAG ? text.devices.firstTag : each);
  return (
    <Panel
      title={text.devices.title}
      beside={
        <label className={css["choice"]}>
          {text.devices.group}
          <select value={by} onChange={({ target }) => void navigate({ to: "/", search: { group: target.value }, replace: true })}>
            {options.map((each) => (
              <option key={each} value={each}>
                {wordOf(each)}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <Loaded read={fleet} rows={4}>
        {(known) => (
          <>
            <Groups devices={known} by={by} />
            {total !== undefined && total > known.length ? <p className="muted">{text.devices.firstOf(known.length)}</p> : null}
          </>
        )}
      </Loaded>
    </Panel>
  );
};

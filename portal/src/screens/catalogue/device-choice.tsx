// Where an application is installed: the devices with what speaks against each, or, where there are many, a search for one.
import type { AppTemplate, Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { PickDevices } from "../../parts/selector-field.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Loaded } from "../../ui/parts.tsx";
import { useId } from "../../ui/use-id.ts";
import css from "./catalogue.module.css";
import { fitText, lackingTexts, reasonsOf } from "./fit-words.ts";
import { text } from "./text.ts";

const FEW = 12;

interface DeviceChoiceProps {
  readonly of: AppTemplate;
  readonly picked: string | null;
  readonly onChange: (deviceId: string | null) => void;
}

/** What to know of the device before the app is sent there. */
const outlookOf = (of: AppTemplate, device: Device): string => reasonsOf(of, device) || (device.connection.connectivity === "none" ? text.offline : "");

const Rows = ({ of, picked, onChange, devices }: DeviceChoiceProps & { readonly devices: readonly Device[] }) => {
  const name = useId();
  const rows = devices.map((device) => ({ device, isFit: reasonsOf(of, device) === "" }));
  return (
    <fieldset className={css["devices"]}>
      <legend>{text.device}</legend>
      {rows
        .toSorted((a, b) => Number(b.isFit) - Number(a.isFit))
        .map(({ device, isFit }) => {
          const { deviceId } = device;
          return (
            <label key={deviceId}>
              <input
                type="radio"
                name={name}
                checked={deviceId === picked}
                aria-label={deviceLabel(device)}
                aria-describedby={`${name}${deviceId}`}
                onChange={() => onChange(deviceId)}
              />
              <span className={isFit ? undefined : "muted"}>{deviceLabel(device)}</span>
              <span id={`${name}${deviceId}`} className={css["why"]}>
                {outlookOf(of, device)}
              </span>
            </label>
          );
        })}
    </fieldset>
  );
};

const Outlook = ({ of, deviceId }: { readonly of: AppTemplate; readonly deviceId: string }) => {
  const device = useQuery(api.devices.get.queryOptions({ deviceId })).data;
  return device === undefined ? null : <p role="status">{outlookOf(of, device)}</p>;
};

const Search = ({ of, picked, onChange }: DeviceChoiceProps) => (
  <>
    <PickDevices label={text.device} picked={picked === null ? [] : [picked]} onChange={(ids) => onChange(ids.at(-1) ?? null)} />
    {picked === null ? null : <Outlook of={of} deviceId={picked} />}
    <p className="muted">{[fitText(of), ...lackingTexts(of)].filter((each) => each !== null).join(". ")}</p>
  </>
);

export const DeviceChoice = (props: DeviceChoiceProps) => {
  const read = useQuery(api.devices.list.queryOptions({ pageSize: FEW, sort: "name" }));
  return (
    <Loaded read={read} rows={Math.min(FEW, props.of.fits?.total ?? 1)}>
      {({ items, total = items.length }) => (total > FEW ? <Search {...props} /> : <Rows {...props} devices={items} />)}
    </Loaded>
  );
};

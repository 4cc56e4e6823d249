// Which devices somebody or something is limited to: all, or those that are picked by name, by tag and by fleet.
import type { Member } from "@mooring/client";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { api } from "../api/client.ts";
import { counted } from "../ui/count.ts";
import { deviceLabel } from "../ui/device-label.ts";
import { type Choice, PickField } from "../ui/fields/pick-field.tsx";
import { useId } from "../ui/use-id.ts";
import css from "./selector-field.module.css";

export type Selector = NonNullable<Member["selector"]>;

const NOTHING: Selector = { deviceIds: [], tags: [], fleetIds: [] };
const MAX_CHOICES = 8;
const MAX_FLEETS = 100;
const TAG = /^[a-z0-9_.:-]{1,64}$/;

/** Whether the choice is complete: the API refuses a limit that names nothing. */
export const isComplete = (selector: Selector | null): boolean => selector === null || Object.values(selector).some(({ length }) => length > 0);

const countOf = (count: number, one: string): readonly string[] => (count === 0 ? [] : [counted(count, one)]);

/** Such as `3 devices, 1 fleet, roof, site:lisbon`. */
export const selectorText = (selector: Selector | null): string => {
  if (selector === null) return "All devices";
  const { deviceIds, fleetIds, tags } = selector;
  return [...countOf(deviceIds.length, "device"), ...countOf(fleetIds.length, "fleet"), ...tags].join(", ");
};

const without = (all: readonly string[], one: string): string[] => all.filter((each) => each !== one);

interface PickDevicesProps {
  readonly label?: string;
  readonly picked: readonly string[];
  readonly onChange: (ids: string[]) => void;
}
export const PickDevices = ({ label = "Devices", picked, onChange }: PickDevicesProps) => {
  const [typed, setTyped] = useState("");
  const q = useDeferredValue(typed.trim());
  const found = useQuery(
    api.devices.list.queryOptions({ pageSize: MAX_CHOICES, sort: "name", ...(q === "" ? {} : { q }) }, { placeholderData: keepPreviousData }),
  );
  const known = useQuery({
    ...api.devices.getMany.queryOptions({ ids: [...picked] }, { placeholderData: keepPreviousData }),
    enabled: picked.length > 0,
  });
  const toChoice = (device: Parameters<typeof deviceLabel>[0]): Choice => ({ id: device.deviceId, word: deviceLabel(device) });
  const words = new Map([...(found.data?.items ?? []), ...(known.data?.items ?? [])].map((device) => [device.deviceId as string, toChoice(device).word]));
  return (
    <PickField
      label={label}
      placeholder="A part of the name"
      picked={picked.map((id) => ({ id, word: words.get(id) ?? id }))}
      choices={(found.data?.items ?? []).map(toChoice)}
      onType={setTyped}
      onPick={(id) => onChange([...picked, id])}
      onRemove={(id) => onChange(without(picked, id))}
    />
  );
};

interface PickTagsProps {
  readonly picked: readonly string[];
  readonly onChange: (tags: string[]) => void;
  readonly hint?: string;
}
export const PickTags = ({ picked, onChange, hint = "Devices that get one of these tags later are included." }: PickTagsProps) => {
  const [typed, setTyped] = useState("");
  const counts = useQuery({ ...api.devices.summary.queryOptions({ groupBy: "tag" }), staleTime: 60_000 });
  const tag = typed.trim().toLowerCase();
  const existing = (counts.data?.groups ?? []).flatMap(({ value }) => (value?.includes(tag) ? [value] : [])).slice(0, MAX_CHOICES);
  const toChoice = (id: string): Choice => ({ id, word: id });
  return (
    <PickField
      label="Tags"
      hint={hint}
      placeholder="roof or site:lisbon"
      picked={picked.map(toChoice)}
      choices={(TAG.test(tag) && !existing.includes(tag) ? [...existing, tag] : existing).map(toChoice)}
      onType={setTyped}
      onPick={(id) => onChange([...picked, id])}
      onRemove={(id) => onChange(without(picked, id))}
    />
  );
};

export const PickFleets = ({ picked, onChange }: { readonly picked: readonly string[]; readonly onChange: (ids: string[]) => void }) => {
  const [typed, setTyped] = useState("");
  const all = useQuery(api.fleets.list.queryOptions({ pageSize: MAX_FLEETS, sort: "name" })).data?.items ?? [];
  const choices = all.map(({ fleetId, name }): Choice => ({ id: fleetId, word: name }));
  const words = new Map(choices.map(({ id, word }) => [id, word]));
  return (
    <PickField
      label="Fleets"
      placeholder="A part of the name"
      picked={picked.map((id) => ({ id, word: words.get(id) ?? id }))}
      choices={choices.filter(({ word }) => word.toLowerCase().includes(typed.trim().toLowerCase())).slice(0, MAX_CHOICES)}
      onType={setTyped}
      onPick={(id) => onChange([...picked, id])}
      onRemove={(id) => onChange(without(picked, id))}
    />
  );
};

export interface SelectorFieldProps {
  readonly label: string;
  /** `null`: all devices. */
  readonly value: Selector | null;
  readonly onChange: (selector: Selector | null) => void;
}

export const SelectorField = ({ label, value, onChange }: SelectorFieldProps) => {
  const name = useId();
  // Switching to all devices and back does not lose what was picked.
  const [last, setLast] = useState(value ?? NOTHING);
  const change = (part: Partial<Selector>): void => {
    const next = { ...last, ...part };
    setLast(next);
    onChange(next);
  };
  return (
    <fieldset className={css["selector"]}>
      <legend>{label}</legend>
      <div className="row">
        <label>
          <input type="radio" name={name} checked={value === null} onChange={() => onChange(null)} /> All devices
        </label>
        <label>
          <input type="radio" name={name} checked={value !== null} onChange={() => onChange(last)} /> Only some
        </label>
      </div>
      {value === null ? null : (
        <>
          <PickDevices picked={value.deviceIds} onChange={(deviceIds) => change({ deviceIds })} />
          <PickTags picked={value.tags} onChange={(tags) => change({ tags })} />
          <PickFleets picked={value.fleetIds} onChange={(fleetIds) => change({ fleetIds })} />
        </>
      )}
    </fieldset>
  );
};

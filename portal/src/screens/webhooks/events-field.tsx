// The events that a webhook receives: all, all of a group, or single types.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { Check, Checks } from "../../ui/fields/checks.tsx";
import { Loaded } from "../../ui/parts.tsx";
import { text } from "./text.ts";
import css from "./webhooks.module.css";

const ALL = "*";

export const useEventTypes = (enabled = true) => useQuery({ ...api.webhooks.eventTypes.queryOptions({}), staleTime: 600_000, refetchInterval: false, enabled });

interface EventsFieldProps {
  readonly picked: readonly string[];
  readonly onChange: (picked: string[]) => void;
}

type Types = readonly { readonly name: string; readonly group: string; readonly description: string }[];

const GroupField = ({ group, types, picked, onChange }: EventsFieldProps & { readonly group: string; readonly types: Types }) => {
  const [all, whole] = [picked.includes(ALL), `${group}.*`];
  const isWhole = all || picked.includes(whole);
  const set = (name: string, isPicked: boolean): void => {
    const others = picked.filter((each) => each !== name && !(name === whole && each.startsWith(`${group}.`)));
    onChange(isPicked ? [...others, name] : others);
  };
  const count = types.filter(({ name }) => picked.includes(name)).length;
  return (
    <details>
      <summary>
        {group} <span className="muted">{isWhole ? text.allPicked : text.picked(count, types.length)}</span>
      </summary>
      <Checks label={<span className="out-of-sight">{group}</span>}>
        <Check name={whole} label={text.allOf(group)} checked={isWhole} disabled={all} onChange={({ target }) => set(whole, target.checked)} />
        {types.map(({ name, description }) => (
          <Check
            key={name}
            name={name}
            label={<code>{name}</code>}
            hint={description}
            checked={isWhole || picked.includes(name)}
            disabled={isWhole}
            onChange={({ target }) => set(name, target.checked)}
          />
        ))}
      </Checks>
    </details>
  );
};

export const EventsField = ({ picked, onChange }: EventsFieldProps) => {
  const read = useEventTypes();
  return (
    <fieldset className={css["events"]}>
      <legend>{text.events}</legend>
      <p className="muted">{picked.length === 0 ? text.noEvents : picked.join(", ")}</p>
      <Check name={ALL} label={text.allEvents} checked={picked.includes(ALL)} onChange={({ target }) => onChange(target.checked ? [ALL] : [])} />
      <Loaded read={read} rows={4}>
        {({ items }) => (
          <div className={css["groups"]}>
            {[...new Set(items.map(({ group }) => group))].toSorted().map((group) => (
              <GroupField key={group} group={group} types={items.filter((each) => each.group === group)} picked={picked} onChange={onChange} />
            ))}
          </div>
        )}
      </Loaded>
    </fieldset>
  );
};

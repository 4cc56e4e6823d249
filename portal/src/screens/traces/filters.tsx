// The filters of the traces. Operations have spaces in their names, so each filter is a field of its own.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api } from "../../api/client.ts";
import { given } from "../../api/search.ts";
import { useId } from "../../ui/use-id.ts";
import { OUTCOMES, type TraceSearch, WINDOWS } from "./search.ts";
import { text } from "./text.ts";
import css from "./traces.module.css";

interface FiltersProps {
  readonly of: TraceSearch;
  readonly onChange: (next: Readonly<Record<string, unknown>>) => void;
}

const Labelled = ({ label, children }: { readonly label: string; readonly children: (id: string) => ReactNode }) => {
  const id = useId();
  return (
    <div className={css["filter"]}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  );
};

interface ChoiceProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly options: readonly (readonly [value: string, word: string])[];
  readonly onChange: (value: string) => void;
  readonly isFirst?: boolean;
}
/** What the URL names stays a choice, also when the API does not list it. */
const Choice = ({ label, value = "", options, onChange, isFirst }: ChoiceProps) => (
  <Labelled label={label}>
    {(id) => (
      <select id={id} data-filter={isFirst} value={value} onChange={({ target }) => onChange(target.value)}>
        {(value === "" || options.some(([each]) => each === value) ? options : [...options, [value, value] as const]).map(([each, word]) => (
          <option key={each} value={each}>
            {word}
          </option>
        ))}
      </select>
    )}
  </Labelled>
);

interface TypedProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly placeholder: string;
  readonly type: "text" | "number";
  readonly onChange: (value: string) => void;
}
/** Counts when somebody has finished: by Enter, or by leaving the field. */
const Typed = ({ label, value = "", onChange, ...input }: TypedProps) => (
  <Labelled label={label}>
    {(id) => (
      <input
        key={value}
        id={id}
        defaultValue={value}
        autoComplete="off"
        spellCheck={false}
        min={0}
        maxLength={80}
        onBlur={({ target }) => (target.value.trim() === value ? undefined : onChange(target.value.trim()))}
        onKeyDown={({ key, currentTarget }) => (key === "Enter" ? onChange(currentTarget.value.trim()) : undefined)}
        {...input}
      />
    )}
  </Labelled>
);

export const TraceFilters = ({ of, onChange }: FiltersProps) => {
  const { service, operation, device, status, min, window } = of;
  const services = useQuery(api.traces.services.queryOptions({})).data?.items ?? [];
  const operations = useQuery(api.traces.operations.queryOptions(given({ service }))).data?.items ?? [];
  const set = (next: Readonly<Record<string, string>>): void => onChange({ ...of, ...next });
  const names = [...new Set(operations.map((each) => each.operation))].toSorted();
  return (
    <search aria-label={text.filters} className={css["filters"]}>
      <Choice
        label={text.service}
        value={service}
        options={[["", text.any], ...services.map((each) => [each.service, each.service] as const)]}
        onChange={(chosen) => set({ service: chosen, operation: "" })}
        isFirst
      />
      <Choice
        label={text.operation}
        value={operation}
        options={[["", text.any], ...names.map((name) => [name, name] as const)]}
        onChange={(chosen) => set({ operation: chosen })}
      />
      <Choice
        label={text.status}
        value={status}
        options={[["", text.anyStatus], ...OUTCOMES.map((each) => [each, text.statuses[each]] as const)]}
        onChange={(chosen) => set({ status: chosen })}
      />
      <Choice
        label={text.window}
        value={window ?? "1h"}
        options={WINDOWS.map((each) => [each, text.windows[each]] as const)}
        onChange={(chosen) => set({ window: chosen === "1h" ? "" : chosen })}
      />
      <Typed label={text.min} value={min} type="number" placeholder={text.minHint} onChange={(typed) => set({ min: typed })} />
      <Typed label={text.device} value={device} type="text" placeholder={text.deviceHint} onChange={(typed) => set({ device: typed })} />
    </search>
  );
};

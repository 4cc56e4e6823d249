// The form of an application, made from the schema of its configuration. What the gateway refused stands at the field.
import { type RefObject, useEffect, useRef } from "react";
import { Field } from "../ui/dialog.tsx";
import { Check } from "../ui/fields/checks.tsx";
import { type AppSecret, type ConfigProperty, type ConfigSchema, configField, type Refused, secretField } from "./apps/app-config.ts";
import { text } from "./apps/app-text.ts";

const FORMATS: Readonly<Record<string, string>> = { uri: "url", email: "email" };

/** What a control of any kind gets. */
const controlOf = (name: string, required: boolean, describedBy: string | undefined, fault: string | undefined) => ({
  name,
  required,
  "aria-describedby": describedBy,
  "aria-invalid": fault === undefined ? undefined : true,
});

interface PropertyFieldProps {
  readonly name: string;
  readonly of: ConfigProperty;
  readonly required: boolean;
  readonly value: unknown;
  readonly fault: string | undefined;
}

const Control = ({
  id,
  describedBy,
  name,
  of,
  required,
  value,
  fault,
}: PropertyFieldProps & { readonly id: string; readonly describedBy: string | undefined }) => {
  const same = { id, ...controlOf(configField(name), required, describedBy, fault) };
  const shown = value === undefined ? "" : String(value);
  if (of.type === "integer" || of.type === "number")
    return <input {...same} type="number" step={of.type === "number" ? "any" : 1} min={of.minimum} max={of.maximum} defaultValue={shown} autoComplete="off" />;
  if (of.type !== "string") return null;
  if (of.enum !== undefined)
    return (
      <select {...same} defaultValue={shown}>
        {value === undefined ? <option value="" /> : null}
        {of.enum.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    );
  if (of.contentMediaType !== undefined) return <textarea {...same} rows={4} maxLength={of.maxLength} defaultValue={shown} spellCheck={false} />;
  return <input {...same} type={FORMATS[of.format ?? ""] ?? "text"} maxLength={of.maxLength} defaultValue={shown} autoComplete="off" spellCheck={false} />;
};

const PropertyField = (props: PropertyFieldProps) => {
  const { name, of, value, fault } = props;
  const { title, description } = of;
  if (of.type === "boolean")
    return <Check name={configField(name)} label={title} {...(description === undefined ? {} : { hint: description })} defaultChecked={value === true} />;
  return (
    <Field label={title} hint={description} fault={fault}>
      {(id, describedBy) => <Control id={id} describedBy={describedBy} {...props} />}
    </Field>
  );
};

/** Leads to the first field that was refused. */
const useFault = (faults: Refused["faults"]): RefObject<HTMLDivElement | null> => {
  const within = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (faults.size > 0) within.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus();
  }, [faults]);
  return within;
};

export interface ConfigFieldsProps {
  readonly schema: ConfigSchema;
  /** To begin with, beside the defaults. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly secrets?: readonly AppSecret[];
  /** Must stay the same object while nothing new was refused. */
  readonly refused: Refused;
}

export const ConfigFields = ({ schema, config = {}, secrets = [], refused: { faults, rest } }: ConfigFieldsProps) => {
  const within = useFault(faults);
  return (
    <div className="stack" ref={within}>
      {Object.entries(schema.properties).map(([name, of]) => (
        <PropertyField
          key={name}
          name={name}
          of={of}
          required={schema.required.includes(name)}
          value={Object.hasOwn(config, name) ? config[name] : of.default}
          fault={faults.get(configField(name))}
        />
      ))}
      {secrets.map(({ name, title, description, required, generated }) => (
        <Field
          key={name}
          label={title}
          hint={[description, generated ? text.generated : null].filter((each) => each !== null).join(" ") || undefined}
          fault={faults.get(secretField(name))}
        >
          {(id, describedBy) => (
            <input
              id={id}
              {...controlOf(secretField(name), required && !generated, describedBy, faults.get(secretField(name)))}
              type="password"
              autoComplete="new-password"
            />
          )}
        </Field>
      ))}
      {faults.size > 0 && rest === null ? <p role="alert">{text.unfit}</p> : null}
    </div>
  );
};

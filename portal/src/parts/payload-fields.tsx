// A form for the simple properties of a payload. It reads and writes the JSON text, which stays the payload's only state.
import { Field } from "../ui/dialog.tsx";
import { type Payload, type SimpleField, withField } from "./payload.ts";

interface PayloadFieldsProps {
  readonly fields: readonly SimpleField[];
  readonly payload: Payload;
  readonly onChange: (json: string) => void;
}

const shown = (value: unknown): string => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value));

export const PayloadFields = ({ fields, payload, onChange }: PayloadFieldsProps) =>
  fields.map((field) => {
    const change = ({ target }: { readonly target: { readonly value: string } }): void =>
      onChange(JSON.stringify(withField(payload, field, target.value), null, 2));
    const { name, type, required } = field;
    const options = type === "boolean" ? ["true", "false"] : field.options;
    const value = shown(Object.hasOwn(payload, name) ? payload[name] : undefined);
    return (
      <Field key={name} label={required ? `${name} (required)` : name}>
        {(id) =>
          options === null ? (
            <input
              id={id}
              value={value}
              type={type === "string" ? "text" : "number"}
              step={type === "number" ? "any" : undefined}
              autoComplete="off"
              onChange={change}
            />
          ) : (
            <select id={id} value={value} onChange={change}>
              <option value="" />
              {options.map((option) => (
                <option key={option}>{option}</option>
              ))}
            </select>
          )
        }
      </Field>
    );
  });

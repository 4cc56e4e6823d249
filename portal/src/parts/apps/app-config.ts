// What people typed into the form of an application: its configuration, its secrets, and the faults that the gateway found.
import type { AppTemplate } from "@mooring/client";
import { factsOf } from "../../ui/failure.tsx";

export type ConfigSchema = AppTemplate["configSchema"];
export type ConfigProperty = ConfigSchema["properties"][string];
export type AppSecret = Pick<AppTemplate["secrets"][number], "name" | "title" | "description" | "required" | "generated">;

/** The fields' names in the form, apart from those beside them. */
export const configField = (name: string): string => `config.${name}`;
export const secretField = (name: string): string => `secrets.${name}`;

const typedValue = ({ type }: ConfigProperty, typed: FormDataEntryValue | null): unknown => {
  if (type === "boolean") return typed !== null;
  if (type === "string") return String(typed ?? "");
  // Left out, so that the default counts.
  return typed === null || typed === "" ? undefined : Number(typed);
};

export const configOf = (schema: ConfigSchema, fields: FormData): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(schema.properties)
      .map(([name, property]) => [name, typedValue(property, fields.get(configField(name)))] as const)
      .filter(([, value]) => value !== undefined),
  );

/** The secrets that somebody typed. */
export const secretsOf = (secrets: readonly AppSecret[], fields: FormData): Record<string, string> =>
  Object.fromEntries(secrets.map(({ name }) => [name, String(fields.get(secretField(name)) ?? "")] as const).filter(([, value]) => value !== ""));

export interface Refused {
  /** By the name of the field. */
  readonly faults: ReadonlyMap<string, string>;
  /** What no field of the form can show. */
  readonly rest: unknown;
}
const NOTHING: Refused = { faults: new Map(), rest: null };

interface Issue {
  readonly path: string;
  readonly message: string;
}

export const refusedOf = (error: unknown, schema: ConfigSchema, secrets: readonly AppSecret[] = []): Refused => {
  if (error === null || error === undefined) return NOTHING;
  const { code, details } = factsOf(error);
  const issues = code === "APP_CONFIG_INVALID" && Array.isArray(details["issues"]) ? (details["issues"] as readonly Issue[]) : []; // as: the error's declared details
  const shown = new Set([...Object.keys(schema.properties).map(configField), ...secrets.map(({ name }) => secretField(name))]);
  const named = issues.map(({ path, message }) => [path.startsWith("secrets.") ? path : configField(path), message] as const);
  return { faults: new Map(named), rest: named.length > 0 && named.every(([name]) => shown.has(name)) ? null : error };
};

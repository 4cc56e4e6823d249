// Checks a configuration against the schema of its template, and fills the defaults in.
import { z } from "zod";
import { AppConfig, type ConfigSchema } from "../../../../protocol/index.ts";

export interface ConfigFault {
  /** The name of the setting; empty for the configuration as a whole. */
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

export interface CheckedConfig {
  /** With the defaults of the settings that are not given. */
  readonly config: AppConfig;
  /** Empty: the configuration fits. */
  readonly faults: readonly ConfigFault[];
}

export type CheckConfig = (config: AppConfig) => CheckedConfig;

const faultsOf = (issue: z.core.$ZodIssue): readonly ConfigFault[] =>
  issue.code === "unrecognized_keys"
    ? issue.keys.map((path) => ({ path, code: issue.code, message: "is no setting of this application" }))
    : [{ path: issue.path.join("."), code: issue.code, message: issue.message }];

/** Two ports of one app cannot have the same number. */
const portFaults = (config: AppConfig, ports: readonly string[]): readonly ConfigFault[] =>
  ports.flatMap((name, at) => {
    const other = ports.slice(0, at).find((before) => config[before] === config[name]);
    return other === undefined ? [] : [{ path: name, code: "port_taken", message: `is the number of ${other} already` }];
  });

/** `ports` names the settings that hold numbers of ports. */
export const createCheckConfig = (schema: ConfigSchema, ports: readonly string[]): CheckConfig => {
  const form = z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema); // as: zod allows no undefined property, and text of JSON has none
  const names = [...new Set(ports)];
  return (given) => {
    const { success, data, error } = form.safeParse(given);
    if (!success) return { config: given, faults: error.issues.flatMap(faultsOf) };
    const config = AppConfig.parse(data);
    return { config, faults: portFaults(config, names) };
  };
};

// Checks a configuration against the schema of its template, and fills the defaults in.
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { AppConfig } from "../../../../protocol/index.ts";

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

const faultOf = ({ keyword, instancePath, params, message = "does not fit" }: ErrorObject): ConfigFault => {
  if (keyword === "required") return { path: params["missingProperty"], code: keyword, message: "is required" };
  if (keyword === "additionalProperties") return { path: params["additionalProperty"], code: keyword, message: "is no setting of this application" };
  return { path: instancePath.slice(1), code: keyword, message };
};

/** Two ports of one app cannot have the same number. */
const portFaults = (config: AppConfig, ports: readonly string[]): readonly ConfigFault[] =>
  ports.flatMap((name, at) => {
    const other = ports.slice(0, at).find((before) => config[before] === config[name]);
    return other === undefined ? [] : [{ path: name, code: "port_taken", message: `is the number of ${other} already` }];
  });

export const createConfigChecks = () => {
  const ajv = new Ajv2020({ allErrors: true, useDefaults: true, strict: true });
  formats.default(ajv, ["uri", "email", "hostname", "ipv4"]);
  /** Throws if the schema is none. `ports` names the settings that hold numbers of ports. */
  return (schema: object, ports: readonly string[]): CheckConfig => {
    const validate: ValidateFunction = ajv.compile(schema);
    return (given) => {
      const config = structuredClone(given);
      if (validate(config)) return { config, faults: portFaults(config, [...new Set(ports)]) };
      return { config, faults: (validate.errors ?? []).map(faultOf) };
    };
  };
};

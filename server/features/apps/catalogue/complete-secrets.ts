// Completes the secrets that somebody gave a new app: random values for those that the template lets us make, a fault for each that is missing.
import { newSecret } from "../../../core/ids.ts";
import type { ConfigFault } from "./check-config.ts";
import type { TemplateFacts } from "./load.ts";

export interface CompletedSecrets {
  readonly values: ReadonlyMap<string, string>;
  /** Empty: the secrets are complete. */
  readonly faults: readonly ConfigFault[];
}

export const completeSecrets = ({ secrets }: Pick<TemplateFacts, "secrets">, given: ReadonlyMap<string, string>): CompletedSecrets => {
  const known = new Set(secrets.map(({ name }) => name));
  const absent = secrets.filter(({ name }) => !given.has(name));
  return {
    values: new Map([...given, ...absent.filter(({ generated }) => generated).map(({ name }): [string, string] => [name, newSecret()])]),
    faults: [
      ...[...given.keys()].filter((name) => !known.has(name)).map((path) => ({ path, code: "unknown", message: "is no secret of this application" })),
      ...absent.filter(({ required, generated }) => required && !generated).map(({ name }) => ({ path: name, code: "required", message: "is required" })),
    ],
  };
};

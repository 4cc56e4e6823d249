// What people give for an app: its configuration and its secrets.
import { z } from "zod";
import { VariableName } from "./app-spec.ts";

/** A configuration of any depth and size: the server answers 422 with the path of each fault. */
export const ConfigInput = z.record(z.string().max(128), z.unknown());
const MAX_SECRET_BYTES = 32_768;
export const SecretValue = z
  .string()
  .max(MAX_SECRET_BYTES)
  .refine((value) => new TextEncoder().encode(value).length <= MAX_SECRET_BYTES, "must have at most 32 KiB");
export const MAX_SECRETS = 200;
export const SecretsInput = z
  .record(VariableName, SecretValue)
  .refine((secrets) => Object.keys(secrets).length <= MAX_SECRETS, `must have at most ${MAX_SECRETS} keys`);

// The template that tests install.
import { readFileSync } from "node:fs";

export const TEMPLATE = "key-value";
const FACTS = JSON.parse(readFileSync(new URL(`../../../server/catalogue/${TEMPLATE}/app.json`, import.meta.url), "utf8"));
/** The configuration of one who gives none. */
export const DEFAULTS: { readonly port: number; readonly maxKeys: number } = {
  port: FACTS.configSchema.properties.port.default,
  maxKeys: FACTS.configSchema.properties.maxKeys.default,
};

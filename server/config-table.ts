// What each setting is and means, with secrets masked: for `npm run cli -- config` and the table in docs/settings.md.
import { type Config, Settings } from "./config.ts";
import { words } from "./config-values.ts";

const SECRETS: ReadonlySet<string> = new Set(
  words(
    "INTERNAL_TOKEN,MASTER_KEY,MASTER_KEY_OTHER,DATABASE_URL,DATABASE_MIGRATION_URL,REDIS_URL,STRIPE_SECRET_KEY,STRIPE_WEBHOOK_SECRET,SMTP_URL,OIDC_CLIENT_SECRET",
  ),
);

export interface ConfigRow {
  readonly name: string;
  readonly value: string;
  readonly fallback: string;
  readonly meaning: string;
}

const show = (value: unknown): string => {
  if (value === undefined) return "unset";
  if (value === null) return "off";
  if (Array.isArray(value)) return value.join(",") || "unset";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};

/** The effective values in the order of the schema, with secrets masked. */
export const describeConfig = (config: Omit<Config, "setUpBy">): readonly ConfigRow[] => {
  const values: Readonly<Record<string, unknown>> = config;
  const defaults: Readonly<Record<string, unknown>> = Settings.parse({});
  return Object.entries(Settings.shape).map(([name, schema]) => ({
    name,
    value: SECRETS.has(name) && values[name] !== undefined ? "********" : show(values[name]),
    fallback: show(defaults[name]),
    meaning: schema.description ?? "",
  }));
};

/** The table in docs/settings.md. */
export const settingsTable = (): string => {
  const rows = describeConfig(Settings.parse({})).map(({ name, fallback, meaning }) => `| \`${name}\` | ${fallback} | ${meaning} |`);
  return ["| Setting | Default | Meaning |", "|---|---|---|", ...rows].join("\n");
};

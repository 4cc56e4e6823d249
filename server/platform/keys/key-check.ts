// Compares the master key with the database at start: another key would open nothing, and would seal what the right one cannot open.
import type pg from "pg";
import { ConfigError } from "../../core/errors.ts";
import { SEALED, type SealedContext, type SealedPlace } from "./sealed.ts";
import { keyIdOf, type SecretBox } from "./secrets.ts";

const CHECK = "mooring";
const CONTEXT = "key-check";
/** So many rows of each column stand for all, in a database from before the check value. */
const SAMPLE = 5;

type Queryable = Pick<pg.Pool, "query">;

export const sealedCheck = (secretBox: Pick<SecretBox, "seal">): Uint8Array => secretBox.seal(CHECK, CONTEXT);

/**
 * Throws a ConfigError if this database was used with a key that the box does not have. Leaves a check value where none is.
 * The caller holds the migration lock, so of two first starts with different keys one is refused.
 */
export const checkMasterKey = async (sql: Queryable, secretBox: SecretBox): Promise<void> => {
  const { rows } = await sql.query<{ check: Uint8Array | null }>("select key_check as check from installation where id = 1");
  const check = rows[0]?.check ?? null;
  if (check !== null) {
    if (!opens(secretBox, check, CONTEXT)) throw wrongKey(secretBox, check);
    return;
  }
  const samples = await sampleSealed(sql);
  const [first] = samples;
  // One that opens is enough: a start with a wrong key, before there was this check, may have left others.
  if (first !== undefined && !samples.some(({ sealed, context }) => opens(secretBox, sealed, context))) throw wrongKey(secretBox, first.sealed);
  await sql.query("insert into installation (id, key_check) values (1, $1) on conflict (id) do update set key_check = $1", [sealedCheck(secretBox)]);
};

const opens = (secretBox: SecretBox, sealed: Uint8Array, context: SealedContext): boolean => {
  try {
    secretBox.open(sealed, context);
    return true;
  } catch {
    return false;
  }
};

const wrongKey = ({ keyId }: SecretBox, sealed: Uint8Array): ConfigError =>
  new ConfigError(
    `MASTER_KEY: this database is sealed with another master key (${keyIdOf(sealed) ?? "damaged"}; this one is ${keyId}). Start with the key that the database was used with, or, to change the key, name that one in MASTER_KEY_OTHER and run: npm run cli -- master-key rotate`,
  );

interface Sample {
  readonly sealed: Uint8Array;
  readonly context: SealedContext;
}

const sampleSealed = async (sql: Queryable): Promise<readonly Sample[]> => {
  const found: Sample[] = [];
  for (const [kind, place] of Object.entries<SealedPlace>(SEALED))
    for (const column of place.columns) {
      const text = `select concat_ws('|', $1::text, ${place.keys.join(", ")}) as context, ${column} as sealed from ${place.table} where ${column} is not null limit ${SAMPLE}`;
      found.push(...(await sql.query<Sample>(text, [kind])).rows);
    }
  return found;
};

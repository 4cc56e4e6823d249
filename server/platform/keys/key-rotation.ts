// Changes the master key while the installation runs: seals everything again with the key that seals, in batches. The command that does so may be
// killed at any time; the next one goes on, because each row says which key sealed it.
import type pg from "pg";
import { ConfigError } from "../../core/errors.ts";
import { sealedCheck } from "./key-check.ts";
import { SEALED, type SealedContext, type SealedPlace } from "./sealed.ts";
import { type SecretBox, SecretBoxError } from "./secrets.ts";

const BATCH = 200;
/** A node that was just replaced may have sealed something during the last pass. */
const MAX_PASSES = 20;
const ALIVE_SECONDS = 90;

export interface KeyProgress {
  readonly table: string;
  readonly column: string;
  /** Rows of this column that this command has sealed again. */
  readonly resealed: number;
}

export interface Rotated {
  readonly keyId: string;
  readonly resealed: number;
  /** Sealed with neither key, or damaged. They stay as they are. */
  readonly unreadable: number;
  readonly chains: number;
}

export interface KeyRotationDeps {
  readonly sql: Pick<pg.Pool, "query">;
  readonly secretBox: SecretBox;
  /** Signs the chains of the audit log again; returns how many. */
  readonly resign: () => Promise<number>;
  readonly onProgress: (progress: KeyProgress) => void;
}

interface Column extends SealedPlace {
  readonly kind: string;
  readonly column: string;
}

const COLUMNS: readonly Column[] = Object.entries<SealedPlace>(SEALED).flatMap(([kind, place]) => place.columns.map((column) => ({ ...place, kind, column })));

interface Row {
  readonly first: string;
  readonly second: string;
  readonly context: SealedContext;
  readonly sealed: Uint8Array;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

const nextRows = async (
  { sql, secretBox }: KeyRotationDeps,
  { kind, table, column, keys: [first, second] }: Column,
  after: readonly string[],
): Promise<Row[]> => {
  const [order, mark] = second === undefined ? [first, "$3 and $4::text is not null"] : [`${first}, ${second}`, "($3, $4)"];
  const text = `select ${first} as first, ${second ?? "''"} as second, concat_ws('|', $1::text, ${order}) as context, ${column} as sealed from ${table}
    where ${column} is not null and substring(${column} from 2 for 4) <> decode($2, 'hex') and (${order}) > ${mark} order by ${order} limit ${BATCH}`;
  return (await sql.query<Row>(text, [kind, secretBox.keyId, ...after])).rows;
};

/** Leaves a row that somebody has changed meanwhile: it was sealed with the new key, or the next pass finds it. */
const saveRows = async (
  { sql }: KeyRotationDeps,
  { table, column, keys: [first, second] }: Column,
  rows: readonly (Row & { readonly fresh: Uint8Array })[],
) => {
  const text = `update ${table} t set ${column} = decode(v.fresh, 'hex')
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as v(first, second, old, fresh)
    where t.${first} = v.first and ${second === undefined ? "v.second = ''" : `t.${second} = v.second`} and t.${column} = decode(v.old, 'hex')`;
  const { rowCount } = await sql.query(text, [
    rows.map((row) => row.first),
    rows.map((row) => row.second),
    rows.map(({ sealed }) => hex(sealed)),
    rows.map(({ fresh }) => hex(fresh)),
  ]);
  return rowCount ?? 0;
};

const reseal = (secretBox: SecretBox, row: Row): Uint8Array | null => {
  try {
    return secretBox.seal(secretBox.open(row.sealed, row.context), row.context);
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
};

/** One column from its first row to its last. */
const resealColumn = async (deps: KeyRotationDeps, column: Column): Promise<{ readonly resealed: number; readonly unreadable: number }> => {
  let [resealed, unreadable] = [0, 0];
  for (let after: readonly string[] = ["", ""]; ; ) {
    const rows = await nextRows(deps, column, after);
    const fresh = rows.flatMap((row) => {
      const sealed = reseal(deps.secretBox, row);
      return sealed === null ? [] : [{ ...row, fresh: sealed }];
    });
    unreadable += rows.length - fresh.length;
    if (fresh.length > 0) {
      resealed += await saveRows(deps, column, fresh);
      deps.onProgress({ table: column.table, column: column.column, resealed });
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) return { resealed, unreadable };
    after = [last.first, last.second];
  }
};

const refuseOldNodes = async ({ sql, secretBox }: KeyRotationDeps): Promise<void> => {
  const text = `select node_id as id from gateway_nodes where not draining and sealing_key <> $1 and seen_at > now() - make_interval(secs => ${ALIVE_SECONDS}) order by 1 limit 10`;
  const { rows: nodes } = await sql.query<{ readonly id: string }>(text, [secretBox.keyId]);
  if (nodes.length > 0)
    throw new ConfigError(
      `these nodes still seal with another master key: ${nodes.map(({ id }) => id).join(", ")}. Restart them with the new key first; the rotation can begin ${ALIVE_SECONDS} s after the last of them has stopped`,
    );
};

export const rotateKey = async (deps: KeyRotationDeps): Promise<Rotated> => {
  const { sql, secretBox } = deps;
  await refuseOldNodes(deps);
  let total = 0;
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    let [resealed, unreadable] = [0, 0];
    for (const column of COLUMNS) {
      const done = await resealColumn(deps, column);
      resealed += done.resealed;
      unreadable += done.unreadable;
    }
    total += resealed;
    if (resealed > 0) continue;
    const chains = await deps.resign();
    // Last, so that a key that opens everything is refused by no start before.
    if (unreadable === 0) await sql.query("update installation set key_check = $1 where id = 1", [sealedCheck(secretBox)]);
    return { keyId: secretBox.keyId, resealed: total, unreadable, chains };
  }
  throw new Error("something still seals with another master key; stop it and run this again");
};

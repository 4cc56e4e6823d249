// Raw SQL of the hot paths. Code declares each statement once, with its name and row type, and a test checks every one against the schema.

declare const row: unique symbol;

/** SQL that returns such rows; `never` for SQL that returns none. */
export type Statement<Row> = string & { readonly [row]: Row };

const names = new Map<string, string>();

/** PostgreSQL prepares a named statement once per session; parsing and planning every time took more than half of the queue's work. */
export const statement = <Row = never>(name: string, text: string): Statement<Row> => {
  names.set(text, name);
  return text as Statement<Row>; // as: the row exists for the compiler alone
};

/** Waits for the transaction's advisory lock of this name. */
export const LOCK = statement<{ readonly locked: number }>("lock", "select 1 as locked from pg_advisory_xact_lock(hashtextextended($1, 0))");

/** Undefined for SQL that no code declared. */
export const nameOfStatement = (text: string): string | undefined => names.get(text);

/** SQL and name of every statement in the loaded modules. */
export const declaredStatements = (): ReadonlyMap<string, string> => names;

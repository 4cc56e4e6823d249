// Raw SQL of the hot paths. Each statement is declared once, with its name and the row that it answers, and a test holds every one to the schema.

declare const row: unique symbol;

/** SQL that answers such rows; none that never answers any. */
export type Statement<Row> = string & { readonly [row]: Row };

const names = new Map<string, string>();

/** PostgreSQL prepares the statement under its name, once per session: parsing and planning it every time was more than half of the queue's work. */
export const statement = <Row = never>(name: string, text: string): Statement<Row> => {
  names.set(text, name);
  return text as Statement<Row>; // as: the row exists for the compiler alone
};

/** An advisory lock of the transaction, tried and never waited for. */
export const TRY_LOCK = statement<{ readonly mine: boolean }>("tryLock", "select pg_try_advisory_xact_lock($1::bigint) as mine");

/** Undefined for a text that nobody declared. */
export const nameOfStatement = (text: string): string | undefined => names.get(text);

/** Texts and names of all statements of the modules that are loaded. */
export const declaredStatements = (): ReadonlyMap<string, string> => names;

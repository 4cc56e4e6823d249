// What PostgreSQL says of a statement without running it: the columns of its rows, and that it can be planned.
import type pg from "pg";

export interface ResultColumn {
  readonly name: string;
  readonly oid: number;
}

/** The messages of the protocol that only describe; the driver has no call for it. */
class Describe {
  readonly columns: Promise<readonly ResultColumn[]>;
  readonly #text: string;
  #fields: readonly ResultColumn[] = [];
  #resolve: (columns: readonly ResultColumn[]) => void = () => undefined;
  #reject: (error: Error) => void = () => undefined;

  constructor(text: string) {
    this.#text = text;
    this.columns = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit(connection: pg.Connection): void {
    connection.parse({ name: "", text: this.#text, types: [] }, true);
    connection.describe({ type: "S", name: "" }, true);
    connection.sync();
  }
  handleRowDescription({ fields }: { fields: readonly pg.FieldDef[] }): void {
    this.#fields = fields.map(({ name, dataTypeID }) => ({ name, oid: dataTypeID }));
  }
  handleError(error: Error): void {
    this.#reject(error);
  }
  handleReadyForQuery(): void {
    this.#resolve(this.#fields);
  }
}

export const describeStatement = (client: pg.Client, text: string): Promise<readonly ResultColumn[]> => {
  const describe = new Describe(text);
  client.query(describe as unknown as pg.Submittable);
  return describe.columns;
};

/** Planning finds what parsing does not: the index that an ON CONFLICT names. */
export const planStatement = async (client: pg.Client, text: string): Promise<void> => {
  await client.query(`prepare planned as ${text}`);
  try {
    const { rows } = await client.query<{ count: number }>(
      "select cardinality(parameter_types)::int as count from pg_prepared_statements where name = 'planned'",
    );
    const values = Array.from({ length: rows[0]?.count ?? 0 }, () => "null").join(", ");
    await client.query(`explain execute planned${values === "" ? "" : `(${values})`}`);
  } finally {
    await client.query("deallocate planned");
  }
};

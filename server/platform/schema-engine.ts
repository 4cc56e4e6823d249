// Prisma's own schema engine inside Node: it reads prisma/schema and prisma/migrations, applies, and compares.
// The engine comes as WebAssembly on a driver adapter, so no native engine has to be downloaded and the same driver speaks to PostgreSQL everywhere.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PrismaPg } from "@prisma/adapter-pg";
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  DriverAdapterError,
  type SqlMigrationAwareDriverAdapterFactory,
} from "@prisma/driver-adapter-utils";
import type { MigrationList, SchemaEngine, SchemasContainer } from "@prisma/schema-engine-wasm";
import * as bindings from "@prisma/schema-engine-wasm/schema_engine_bg";
import pg from "pg";

/** Prisma's view of the whole database; nothing of ours is managed elsewhere. */
export const EVERYTHING = { externalTables: [], externalEnums: [] };

/** The folder that holds package.json and prisma/, found upwards so that it is the same from the sources and from dist/. */
export const packageRoot = (): string => {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error("package.json not found above server/platform");
    folder = parent;
  }
  return folder;
};

export const schemaFolder = (): string => join(packageRoot(), "prisma", "schema");
export const migrationsFolder = (): string => join(packageRoot(), "prisma", "migrations");

export const readSchema = async (folder: string): Promise<SchemasContainer> => {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".prisma")).sort();
  return { files: await Promise.all(names.map(async (name) => ({ path: join(folder, name), content: await readFile(join(folder, name), "utf8") }))) };
};

/** All migrations in the order of their names. A folder without a readable migration.sql is the engine's to refuse. */
export const readMigrations = async (folder: string): Promise<MigrationList> => {
  const entries = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  const names = entries.map((entry) => entry.name).sort();
  const migrationDirectories = await Promise.all(
    names.map(async (name) => ({
      path: name,
      migrationFile: {
        path: "migration.sql",
        content: await readFile(join(folder, name, "migration.sql"), "utf8").then(
          (value) => ({ tag: "ok" as const, value }),
          (error: unknown) => ({ tag: "error" as const, value: String(error) }),
        ),
      },
    })),
  );
  const lockfile = { path: "./migration_lock.toml", content: await readFile(join(folder, "migration_lock.toml"), "utf8") };
  return { baseDir: folder, lockfile, shadowDbInitScript: "", migrationDirectories };
};

/** Opens the engine on one database, runs, and leaves nothing open. */
export const withSchemaEngine = async <T>(url: string, run: (engine: SchemaEngine) => Promise<T>): Promise<T> => {
  await loadEngine();
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const factory = bindMigrationAwareSqlAdapterFactory(forSchemaEngine(pool));
  try {
    const { files } = await readSchema(schemaFolder());
    const datamodels = files.map((file): [string, string] => [file.path, file.content]);
    const engine = await bindings.SchemaEngine.new({ datamodels }, () => undefined, factory);
    try {
      return await run(engine);
    } finally {
      engine.free();
    }
  } finally {
    await pool.end();
  }
};

// Two shortcomings of the stock adapter that only the schema engine meets.
// It cuts a script at every semicolon, even inside a string or a function body, and runs the pieces one by one. PostgreSQL can read
// a whole script itself and runs it as one transaction, so a migration that fails leaves nothing behind.
// And it does not know the one-letter type "char" of the system catalogue, without which the engine cannot read a database back.
const forSchemaEngine = (pool: pg.Pool): SqlMigrationAwareDriverAdapterFactory => {
  const letters = renameLetterColumns(pool);
  const factory = new PrismaPg(pool);
  return {
    provider: factory.provider,
    adapterName: factory.adapterName,
    connectToShadowDb: () => factory.connectToShadowDb(),
    connect: async () => {
      const adapter = await factory.connect();
      const queryRaw = adapter.queryRaw.bind(adapter);
      adapter.queryRaw = async (query) => {
        letters.clear();
        const answer = await queryRaw(query);
        const columnTypes = answer.columnTypes.map((type, column) => (letters.has(column) ? ColumnTypeEnum.Character : type));
        return { ...answer, columnTypes };
      };
      adapter.executeScript = async (script) => {
        await pool.query(`${script}\n;${noteOf(script)}`).catch(tellEngine);
      };
      return adapter;
    },
  };
};

/** What the database remembers of the last script that was committed, written in the script's own transaction: migrate.ts asks after a kill. */
export const scriptFingerprint = (script: string): string => createHash("sha256").update(script).digest("hex");
const noteOf = (script: string): string => `comment on table _prisma_migrations is '${scriptFingerprint(script)}'`;

// In the words the engine knows, so that its report names the statement's fault.
const tellEngine = (error: unknown): never => {
  if (!(error instanceof pg.DatabaseError)) throw error;
  const { code = "", message, severity = "ERROR", detail, column, hint } = error;
  throw new DriverAdapterError({ kind: "postgres", code, message, severity, detail, column, hint, originalCode: code, originalMessage: message });
};

const LETTER_OID = 18;
const TEXT_OID = 25;

// Passes "char" columns off as text, and remembers which columns of the last answer they were. The engine asks one question at a time.
const renameLetterColumns = (pool: pg.Pool): Set<number> => {
  const letters = new Set<number>();
  const query: (...words: unknown[]) => unknown = pool.query.bind(pool);
  Object.assign(pool, {
    query: async (...words: unknown[]): Promise<unknown> => {
      const answer = await query(...words);
      if (typeof answer === "object" && answer !== null && "fields" in answer && Array.isArray(answer.fields)) {
        answer.fields.forEach((field: pg.FieldDef, column) => {
          if (field.dataTypeID !== LETTER_OID) return;
          letters.add(column);
          field.dataTypeID = TEXT_OID;
        });
      }
      return answer;
    },
  });
  return letters;
};

// Node 20 cannot import .wasm, so the bytes are compiled by hand and handed to the bindings, once per process: the bindings keep them in a module variable.
let loading: Promise<void> | undefined;

const loadEngine = (): Promise<void> => {
  loading ??= instantiate();
  return loading;
};

// The engine bounds its wait for a lock by a timer of ten seconds and never takes it back, so a short program would stay for that long.
const patientTimer = (): Record<string, unknown> => {
  const name = Object.keys(bindings).find((key) => key.startsWith("__wbg_setTimeout_"));
  if (name === undefined) return {};
  return { [name]: (callback: () => void, waitMs: number) => setTimeout(callback, waitMs >>> 0).unref() };
};

// The part of the WebAssembly global used here; its types come with the browser library only, which a server should not see.
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: Record<string, object>) => { readonly exports: Record<string, unknown> };
};

const instantiate = async (): Promise<void> => {
  // Where the engine writes why it gave up; without it a failure inside would be a riddle and end the process.
  let reason = "";
  Object.assign(globalThis, { PRISMA_WASM_PANIC_REGISTRY: { set_message: (message: string) => (reason = message), get: () => reason } });
  const file = join(dirname(createRequire(import.meta.url).resolve("@prisma/schema-engine-wasm")), "schema_engine_bg.wasm");
  const module = new WebAssembly.Module(await readFile(file));
  const { exports } = new WebAssembly.Instance(module, { "./schema_engine_bg.js": { ...bindings, ...patientTimer() } });
  bindings.__wbg_set_wasm(exports);
  const start = exports["__wbindgen_start"];
  if (typeof start === "function") start();
};

// Runs Prisma's schema engine inside Node: it reads prisma/schema and prisma/migrations, applies migrations and compares schemas.
// The engine is WebAssembly on a driver adapter, so nobody downloads a native engine and one driver talks to PostgreSQL everywhere.
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

/** Prisma manages every table of the database. */
export const EVERYTHING = { externalTables: [], externalEnums: [] };

/** The folder of package.json and prisma/. The search goes upwards, so it works from the sources and from dist/. */
const packageRoot = (): string => {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error("package.json not found above server/platform");
    folder = parent;
  }
  return folder;
};

const CONNECT_MS = 10_000;

export const schemaFolder = (): string => join(packageRoot(), "prisma", "schema");
export const migrationsFolder = (): string => join(packageRoot(), "prisma", "migrations");

export const readSchema = async (folder: string): Promise<SchemasContainer> => {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".prisma")).sort();
  return { files: await Promise.all(names.map(async (name) => ({ path: join(folder, name), content: await readFile(join(folder, name), "utf8") }))) };
};

/** The names of all migrations, oldest first. */
export const migrationNames = async (folder: string): Promise<readonly string[]> => {
  const entries = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  return entries.map((entry) => entry.name).sort();
};

/** All migrations, oldest first. The engine refuses a folder without a readable migration.sql. */
export const readMigrations = async (folder: string): Promise<MigrationList> => {
  const migrationDirectories = await Promise.all(
    (await migrationNames(folder)).map(async (name) => ({
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

/** Runs one migration's script; rejects with the error of PostgreSQL. */
export type RunScript = (script: string) => Promise<void>;

const notMigrating: RunScript = () => Promise.reject(new Error("this use of the schema engine applies no migration"));

/** One session on the database, for whoever migrates it or compares its schema. */
export const withMigrationPool = async <T>(url: string, run: (pool: pg.Pool) => Promise<T>): Promise<T> => {
  const pool = new pg.Pool({ connectionString: url, max: 1, application_name: "mooring migrate", connectionTimeoutMillis: CONNECT_MS, keepAlive: true });
  pool.on("error", () => undefined);
  try {
    return await run(pool);
  } finally {
    await pool.end();
  }
};

/** Opens the engine on a database, calls `run` and closes it. */
export const withSchemaEngine = async <T>(pool: pg.Pool, run: (engine: SchemaEngine) => Promise<T>, runScript: RunScript = notMigrating): Promise<T> => {
  await loadEngine();
  const factory = bindMigrationAwareSqlAdapterFactory(forSchemaEngine(pool, runScript));
  const { files } = await readSchema(schemaFolder());
  const datamodels = files.map((file): [string, string] => [file.path, file.content]);
  const engine = await bindings.SchemaEngine.new({ datamodels }, () => undefined, factory);
  try {
    return await run(engine);
  } finally {
    engine.free();
  }
};

/** The engine locks its session before it migrates. A pooler would give that lock to the next transaction's session; migration-lock.ts holds one instead. */
const SESSION_LOCK = /\bpg_advisory_lock\b/i;

// Repairs two shortcomings of the stock adapter that only the schema engine meets.
// It splits a script at every semicolon, even inside a string or a function body, and runs the pieces one by one; migration-scripts.ts runs it instead.
// It also lacks the type "char" of the system catalogue, without which the engine cannot introspect a database.
const forSchemaEngine = (pool: pg.Pool, runScript: RunScript): SqlMigrationAwareDriverAdapterFactory => {
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
      const executeRaw = adapter.executeRaw.bind(adapter);
      adapter.executeRaw = async (query) => (SESSION_LOCK.test(query.sql) ? 1 : executeRaw(query));
      adapter.executeScript = async (script) => {
        await runScript(script).catch(tellEngine);
      };
      return adapter;
    },
  };
};

// Translates the error so that the engine reports what is wrong with the statement.
const tellEngine = (error: unknown): never => {
  if (!(error instanceof pg.DatabaseError)) throw error;
  const { code = "", message, severity = "ERROR", detail, column, hint } = error;
  throw new DriverAdapterError({ kind: "postgres", code, message, severity, detail, column, hint, originalCode: code, originalMessage: message });
};

const LETTER_OID = 18;
const TEXT_OID = 25;

// Declares "char" columns as text and remembers their indexes in the last answer. The engine runs one query at a time.
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

// Node 20 cannot import .wasm, so we compile the bytes and give them to the bindings, once per process: the bindings keep them in a module variable.
let loading: Promise<void> | undefined;

const loadEngine = (): Promise<void> => {
  loading ??= instantiate();
  return loading;
};

// The engine limits its wait for a lock by a ten-second timer that it never clears, which would keep a short program alive.
const patientTimer = (): Record<string, unknown> => {
  const name = Object.keys(bindings).find((key) => key.startsWith("__wbg_setTimeout_"));
  if (name === undefined) return {};
  return { [name]: (callback: () => void, waitMs: number) => setTimeout(callback, waitMs >>> 0).unref() };
};

// The part of the WebAssembly global that we use; TypeScript declares it only in the browser library, which a server should not include.
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: Record<string, object>) => { readonly exports: Record<string, unknown> };
};

const instantiate = async (): Promise<void> => {
  // The engine writes its panic message here; without it a panic would end the process without a reason.
  let reason = "";
  Object.assign(globalThis, { PRISMA_WASM_PANIC_REGISTRY: { set_message: (message: string) => (reason = message), get: () => reason } });
  const file = join(dirname(createRequire(import.meta.url).resolve("@prisma/schema-engine-wasm")), "schema_engine_bg.wasm");
  const module = new WebAssembly.Module(await readFile(file));
  const { exports } = new WebAssembly.Instance(module, { "./schema_engine_bg.js": { ...bindings, ...patientTimer() } });
  bindings.__wbg_set_wasm(exports);
  const start = exports["__wbindgen_start"];
  if (typeof start === "function") start();
};

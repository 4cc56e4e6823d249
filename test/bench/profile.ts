// Where the time of a command goes: the gateways' samples by part, PostgreSQL's statements and the records of its log, each per command.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Inspector, openInspector } from "./inspector.ts";
import { CpuProfile, sharesOf, statementPart, sums } from "./profile-parts.ts";
import type { BenchStage } from "./stage.ts";
import { type LogMark, markLog } from "./storage.ts";

const SAMPLE_EVERY_US = 500;
const STATEMENTS = 14;
const FILES = 16;
const RECORDS = 8;

const say = (text: string): void => void process.stderr.write(`  ${text}\n`);
const row = (value: number, unit: string, name: string): void => say(`${value.toFixed(1).padStart(9)} ${unit}  ${name}`);

interface Profiled {
  readonly nodes: readonly { readonly pid: number; said(): string }[];
  created: number;
}

const start = async (inspector: Inspector): Promise<void> => {
  await inspector.call("Profiler.enable");
  await inspector.call("Profiler.setSamplingInterval", { interval: SAMPLE_EVERY_US });
  await inspector.call("Profiler.start");
};

const stop = async (inspector: Inspector, file: string): Promise<CpuProfile> => {
  const { profile } = (await inspector.call("Profiler.stop")) as { readonly profile: unknown }; // as: parsed below
  inspector.close();
  writeFileSync(file, JSON.stringify(profile));
  return CpuProfile.parse(profile);
};

interface StatementRow {
  readonly text: string;
  readonly calls: number;
  readonly us: number;
  readonly wal: number;
}

const STATEMENT_ROWS = `select regexp_replace(query, '\\s+', ' ', 'g') as text, calls::float8 as calls, (total_exec_time * 1000)::float8 as us, wal_bytes::float8 as wal
  from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database()) order by total_exec_time desc`;

type PartUs = Readonly<Record<string, number>>;

interface Found {
  readonly profiles: readonly CpuProfile[];
  readonly statements: readonly StatementRow[];
  /** Processor time of the measured parts per command. */
  readonly partUs: PartUs;
  readonly commands: number;
}

/** One table for everything: the gateways' time divided like their samples, PostgreSQL's like the execution times of its statements. */
const printParts = ({ profiles, statements, partUs: { gateway = 0, postgres = 0, ...others } }: Found): void => {
  const executed = statements.reduce((sum, { us }) => sum + us, 0);
  const inGateway = [...sharesOf(profiles).parts].map(([part, share]) => [part, share * gateway] as const);
  const inPostgres = statements.map(({ text, us }) => [statementPart(text), (us / executed) * postgres] as const);
  const total = Object.values(others).reduce((sum, us) => sum + us, gateway + postgres);
  say(`\n  microseconds of processor time per command, ${total.toFixed(0)} in all`);
  for (const [part, us] of sums([...inGateway, ...inPostgres, ...Object.entries(others)])) row(us, "us", part);
};

const printFiles = ({ profiles, partUs: { gateway = 0 } }: Found): void => {
  say(`\n  gateways, ${gateway.toFixed(0)} us per command: the files and native functions in which most of it is spent`);
  for (const [file, share] of [...sharesOf(profiles).files].slice(0, FILES)) row(share * gateway, "us", file);
};

const printStatements = ({ statements, partUs: { postgres = 0 }, commands }: Found): void => {
  say(`\n  PostgreSQL, ${postgres.toFixed(0)} us per command: execution time by statement, which includes waiting for a processor, a lock or the disk`);
  for (const { text, calls, us, wal } of statements.slice(0, STATEMENTS))
    row(
      us / commands,
      "us",
      `${(calls / commands).toFixed(3)} calls, ${(wal / commands).toFixed(0)} bytes of log, ${statementPart(text)}: ${text.slice(0, 100)}`,
    );
};

const LOG_ROWS = `select "resource_manager/record_type" as name, combined_size::float8 as bytes, count::float8 as count
  from pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true) order by combined_size desc limit $3`;

const printLog = async (stage: BenchStage, [before, after]: readonly [LogMark, LogMark], commands: number): Promise<void> => {
  await stage.admin("create extension if not exists pg_walinspect");
  say("\n  PostgreSQL's log, by record");
  for (const { name, bytes, count } of await stage.admin<{ name: string; bytes: number; count: number }>(LOG_ROWS, [before.lsn, after.lsn, RECORDS]))
    row(bytes / commands, "bytes", `${(count / commands).toFixed(2)} ${name}`);
};

interface Profiling<T> {
  run(): Promise<T>;
  partUs(found: T): PartUs;
}

/** Runs the load; if the bench is to profile, prints where the time of a command went and writes the samples into the folder. */
export const profiled = async <T>(stage: BenchStage, cluster: Profiled, { run, partUs }: Profiling<T>): Promise<T> => {
  const { profile: folder } = stage;
  if (folder === null) return run();
  mkdirSync(folder, { recursive: true });
  await stage.admin("create extension if not exists pg_stat_statements");
  const inspectors = await Promise.all(cluster.nodes.map(openInspector));
  await Promise.all(inspectors.map(start));
  const [created, before] = [cluster.created, await markLog(stage)];
  await stage.admin("select pg_stat_statements_reset()");
  const result = await run();
  const [after, statements] = [await markLog(stage), await stage.admin<StatementRow>(STATEMENT_ROWS)];
  const profiles = await Promise.all(inspectors.map((inspector, at) => stop(inspector, join(folder, `commands-${cluster.nodes[at]?.pid}.cpuprofile`))));
  const found: Found = { profiles, statements, partUs: partUs(result), commands: cluster.created - created };
  for (const print of [printParts, printFiles, printStatements]) print(found);
  await printLog(stage, [before, after], found.commands);
  return result;
};

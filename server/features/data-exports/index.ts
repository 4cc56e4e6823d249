// Data exports: what a person may read of a tenant, as one signed file. exporter.ts makes it from sections.ts, writer.ts has its form.
import { contract, type DataExport, EXPORT_SCOPES } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import { createChunkBox } from "../../core/chunk-box.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { implement } from "../../core/feature.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { type AccessDeps, createPresentAccess } from "../../core/people/present-access.ts";
import { type AuditActor, type AuditEntry, auditActorOf } from "../../core/ports/audit.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { type ByteRange, fileBytes, rangeOf } from "./download.ts";
import { createExporter, type ExporterDeps } from "./exporter.ts";
import { createExportLinks } from "./links.ts";
import { makeFirst, permissionsFor } from "./sections.ts";
import {
  countDownload,
  countOfDay,
  deleteOldExports,
  type ExportRow,
  findExport,
  findLive,
  hideExport,
  insertExport,
  lockExports,
  pageOfExports,
  readExportChunk,
  saveLink,
  toDataExport,
  useUpLink,
} from "./store.ts";

export type { ExportSettings } from "./exporter.ts";
export { columnsOf, pagesOf, permissionsFor, SECTIONS, type Section } from "./sections.ts";
export { exportKeys, signatureOf } from "./writer.ts";

export interface DataExportsDeps
  extends Pick<FeatureKit, "db" | "clock" | "emit" | "audit" | "secretBox" | "plan" | "until">,
    AccessDeps,
    Pick<ExporterDeps, "handlers" | "gatewayVersion" | "onError" | "settings"> {
  readonly wakeJob: (name: string) => void;
  readonly publicUrl: () => string;
}

const JOB = "data-exports.make";

export const createDataExports = (deps: DataExportsDeps): Feature<typeof contract.dataExports> => {
  const { db, clock, audit, plan, until, wakeJob } = deps;
  const chunkBox = createChunkBox(deps.secretBox, "data export chunks");
  const makeNext = createExporter({ ...deps, chunkBox, access: createPresentAccess(deps) });

  const find = async (scope: TenantScope, exportId: string): Promise<ExportRow> => {
    const row = await findExport(db, scope, exportId);
    if (row === null) throw new AppError("EXPORT_NOT_FOUND", { details: { exportId } });
    return row;
  };
  const shown = (scope: TenantScope, row: ExportRow) => withActor(db, scope, toDataExport(row));

  const noteDownload = async (tx: Tx, { exportId, tenantId }: Pick<ExportRow, "exportId" | "tenantId">, actor: AuditActor, call: AuditEntry["call"]) => {
    await countDownload(tx, { tenantId }, exportId);
    await audit.append(tx, { tenantId, actor, action: "dataExports.download", resource: { type: "exports", id: exportId }, code: null, call });
  };
  const links = createExportLinks(deps.secretBox, clock);
  const lost = (exportId: string): AppError => new AppError("EXPORT_EXPIRED", { details: { exportId } });
  const bytesIn = ({ tenantId, exportId, sizeBytes }: ExportRow, range: ByteRange = { from: 0, to: sizeBytes - 1 }) =>
    fileBytes({ exportId, read: (part) => readExportChunk(db, { tenantId }, exportId, part), chunkBox, lost: () => lost(exportId) }, range);
  const dispositionOf = ({ exportId, format }: ExportRow): string => `attachment; filename="${exportId}.${format}.gz"`;
  const requireFile = ({ exportId, status }: ExportRow): void => {
    if (status === "expired") throw lost(exportId);
    if (status !== "completed") throw new AppError("EXPORT_NOT_READY", { details: { exportId, status } });
  };

  return {
    handlers: implement(contract.dataExports, {
      list: async ({ scope }, query) => {
        const { items, ...page } = await pageOfExports(db, scope, query);
        return pageWithActors(db, scope, { ...page, items: items.map(toDataExport) });
      },
      get: async ({ scope }, { exportId }) => shown(scope, await find(scope, exportId)),
      wait: async ({ scope, signal }, { exportId, status, timeout: seconds }) => {
        const read = () => find(scope, exportId);
        const isDone = (row: ExportRow) => (status as readonly string[]).includes(row.status);
        return shown(scope, await until(scope, { subjectId: exportId, seconds, signal, read, isDone }));
      },
      create: async ({ scope, commit, fail }, { scopes: wanted, format, from = null, to = null }) => {
        const may = permissionsIn(scope);
        const lacks = (scopes: NonNullable<typeof wanted>) => permissionsFor(scopes).find((permission) => !may.has(permission));
        const scopes = EXPORT_SCOPES.filter((each) => (wanted === undefined ? lacks([each]) === undefined : wanted.includes(each)));
        const lacking = lacks(scopes);
        if (lacking !== undefined) throw new AppError("FORBIDDEN", { details: { requiredPermission: lacking } });
        await makeFirst(deps.handlers, scope, scopes);
        return commit(async (tx, afterwards) => {
          await lockExports(tx, scope);
          const live = await findLive(tx, scope);
          if (live !== null) throw fail("EXPORT_IN_PROGRESS", { exportId: live });
          await plan.require(tx, scope, "exportsPerDay", 1);
          const bounds = { from: from === null ? null : new Date(from), to: to === null ? null : new Date(to) };
          const row = await insertExport(tx, scope, { scopes, format, ...bounds, createdBy: actorOf(scope.principal) });
          afterwards(() => wakeJob(JOB));
          return toDataExport(row);
        });
      },
      download: async ({ scope, reply, fail }, { exportId, range: header }) => {
        const row = await find(scope, exportId);
        requireFile(row);
        const { sizeBytes } = row;
        const range = rangeOf(header, sizeBytes);
        if (range === "beyond") throw fail("RANGE_NOT_SATISFIABLE", { sizeBytes });
        // A caller who goes on after a break has been noted.
        if (range === null || range.from === 0)
          await db.tx(async (tx) => {
            audit.begin(tx);
            await noteDownload(tx, row, auditActorOf(scope.principal), scope);
          });
        reply.headers["Accept-Ranges"] = "bytes";
        reply.headers["Content-Disposition"] = dispositionOf(row);
        if (range !== null) {
          reply.status = 206;
          reply.headers["Content-Range"] = `bytes ${range.from}-${range.to}/${sizeBytes}`;
        }
        return bytesIn(row, range ?? undefined);
      },
      link: async ({ scope, commit }, { exportId }) => {
        requireFile(await find(scope, exportId));
        const { type, id } = auditActorOf(scope.principal);
        return commit(async (tx) => {
          const { linkId, until, token } = links.make({ tenantId: scope.tenantId, exportId, by: { type, id } });
          if (!(await saveLink(tx, scope, exportId, linkId))) throw lost(exportId);
          const url = `${deps.publicUrl()}/v1/export/file?token=${token}`;
          return { exportId: exportId as DataExport["exportId"], url, expiresAt: until.toISOString() }; // as: a row's id
        });
      },
      downloadByLink: async ({ scope, reply, fail }, { token }) => {
        const link = links.read(token);
        if (link === null) throw fail("EXPORT_LINK_INVALID");
        const row = await db.tx(async (tx) => {
          audit.begin(tx);
          if (!(await useUpLink(tx, link, link.exportId, link.linkId))) throw fail("EXPORT_LINK_INVALID");
          await noteDownload(tx, link, { ...link.by, email: null }, scope);
          return findExport(tx, link, link.exportId);
        });
        if (row?.status !== "completed") throw lost(link.exportId);
        reply.headers["Content-Disposition"] = dispositionOf(row);
        return bytesIn(row);
      },
      remove: ({ scope, commit }, { exportId }) =>
        commit(async (tx) => {
          await lockExports(tx, scope);
          if ((await findExport(tx, scope, exportId)) === null) throw new AppError("EXPORT_NOT_FOUND", { details: { exportId } });
          await hideExport(tx, scope, exportId, clock.now());
          return null;
        }),
    }),
    counters: { exportsPerDay: (tx, scope) => countOfDay(tx, scope, clock.now()) },
    jobs: [
      { name: JOB, everyMs: 5_000, run: makeNext },
      { name: "data-exports.forget", everyMs: 600_000, run: () => deleteOldExports(db, clock.now()) },
    ],
  };
};

// A tenant that exports and imports, for tests.
import { gunzipSync } from "node:zlib";
import { expect } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import type { Caller, World } from "../../kit/gateway/world.ts";

interface Line {
  readonly n: number;
  readonly line: number | null;
  readonly kind: string;
  readonly key: string;
  readonly action: string;
  readonly code: string | null;
  readonly message: string | null;
  readonly status: string;
  readonly changes: readonly { readonly field: string; readonly from: unknown; readonly to: unknown }[];
}

/** A tenant whose owner exports and imports. */
export const openImporter = async (world: World) => {
  const tenant = await world.tenant();
  await world.sql.query("update tenants set plan = 'business' where tenant_id = $1", [tenant.tenantId]);
  const owner = await tenant.user("owner");
  const call = (method: string, path: string, body?: unknown, as: Caller = owner) => world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
  const must = async (method: string, path: string, body?: unknown, as?: Caller) => {
    const { status, body: answer } = await call(method, path, body, as);
    if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${JSON.stringify(answer)}`);
    return answer.data;
  };
  const report = async (importId: string): Promise<readonly Line[]> => must("GET", `/imports/${importId}/report?pageSize=100`);
  interface Planned {
    readonly importId: string;
    readonly planHash: string;
    readonly counts: Readonly<Record<string, number>>;
    readonly report: readonly Line[];
  }
  const plan = async (document: string, options: object = {}, as?: Caller): Promise<Planned> => {
    const made = await must("POST", "/imports", { document, ...options }, as);
    return { ...made, report: await report(made.importId) };
  };
  const ended = (importId: string) =>
    eventually(async () => {
      const row = await must("GET", `/imports/${importId}`);
      expect(row.status).toMatch(/^(completed|failed)/);
      return row;
    });
  const apply = async ({ importId, planHash }: { readonly importId: string; readonly planHash: string }, as?: Caller) => {
    await must("POST", `/imports/${importId}/apply`, { planHash }, as);
    return ended(importId);
  };
  const send = (importId: string, part: Uint8Array, range?: string, as: Caller = owner) =>
    world.call(as, "POST", `/v1/imports/${importId}/upload`, { rawBody: part, headers: range === undefined ? {} : { "content-range": range } });
  /** Uploads a file and waits for its plan. */
  const upload = async (file: Uint8Array, options: object = {}): Promise<Planned & Record<string, unknown>> => {
    const { importId } = await must("POST", "/imports", options);
    const sent = await send(importId, file);
    if (sent.status !== 200) throw new Error(`the upload answered ${sent.status}: ${JSON.stringify(sent.body)}`);
    const row = await eventually(async () => {
      await runJob(world, "imports.plan");
      const read = await must("GET", `/imports/${importId}`);
      expect(read.status).not.toBe("validating");
      return read;
    });
    return { ...row, report: await report(importId) };
  };
  return { tenant, owner, call, send, upload, must, report, plan, apply, ended };
};
export type Opened = Awaited<ReturnType<typeof openImporter>>;

/** The file of an export. */
export const exportedFile = async (world: World, { must, owner }: Opened, options: object = {}): Promise<Buffer> => {
  const { exportId } = await must("POST", "/exports", options);
  await eventually(async () => {
    await runJob(world, "data-exports.make");
    expect((await must("GET", `/exports/${exportId}`)).status).toBe("completed");
  });
  const file = await fetch(`${world.url}/v1/exports/${exportId}/download`, { headers: owner.headers("") });
  await must("DELETE", `/exports/${exportId}`).catch(() => null);
  return Buffer.from(await file.arrayBuffer());
};
/** The lines of a whole export. */
export const exported = async (world: World, opened: Opened): Promise<string> => gunzipSync(await exportedFile(world, opened)).toString();

// Makes an export and reads its file as whoever downloads it does.
import { gunzipSync } from "node:zlib";
import type { DataExport } from "../../../protocol/index.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import type { Caller, World } from "../../kit/gateway/world.ts";

export const readExport = async (world: World, as: Caller, exportId: string): Promise<DataExport> =>
  (await world.call(as, "GET", `/v1/exports/${exportId}`)).body.data;

/** Orders an export and returns it as it ends. */
export const exported = async (world: World, as: Caller, body: object = {}): Promise<DataExport> => {
  const answer = await world.call(as, "POST", "/v1/exports", { body });
  if (answer.status !== 201) throw new Error(`no export: ${JSON.stringify(answer.body)}`);
  const { exportId } = answer.body.data;
  await runJob(world, "data-exports.make");
  // The gateway's own job may have it.
  return (await world.call(as, "GET", `/v1/exports/${exportId}/wait?status=completed,failed&timeout=30`)).body.data;
};

export const download = async (world: World, as: Caller, exportId: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${world.url}/v1/exports/${exportId}/download`, { headers: { ...as.headers(""), ...headers } });
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
};

export interface FileLine {
  readonly kind: string;
  readonly [name: string]: unknown;
}
export const textIn = (bytes: Uint8Array): string => gunzipSync(bytes).toString("utf8");
export const linesIn = (bytes: Uint8Array): readonly FileLine[] =>
  textIn(bytes)
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as FileLine);

// Takes the items of a draft in parts. A part that comes again changes nothing, so whoever sends may repeat it after a lost answer.
import { createHash } from "node:crypto";
import { z } from "zod";
import type { contract } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { isStorableText } from "../../core/rows/storable.ts";
import type { FeatureKit } from "../kit.ts";
import { requireTargets } from "./limits.ts";
import { ownOf } from "./reads.ts";
import { findPart, insertItems, insertPart, lastItem } from "./store/items.ts";
import { lockBulk, updateBulk } from "./store/operations.ts";
import { unknownBulk } from "./unknown.ts";

type H = Handlers<typeof contract.bulkOperations>;

const Line = z.strictObject({ id: z.string().min(1).max(128).refine(isStorableText) });
const wrong = (reason: string, details: object = {}): AppError => new AppError("BULK_PART_INVALID", { details: { reason, ...details } });

/** The ids of a part, each once. */
export const readLines = (text: string): readonly string[] => {
  const ids = new Set<string>();
  for (const [at, line] of text.split("\n").entries()) if (line.trim() !== "") ids.add(readLine(line, at + 1));
  return [...ids];
};

const readLine = (line: string, number: number): string => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    throw wrong("a line is not JSON", { line: number });
  }
  const read = Line.safeParse(parsed);
  if (read.success) return read.data.id;
  throw wrong('a line must be {"id": "…"} and nothing else', { line: number });
};

export const createUpload = (deps: Pick<FeatureKit, "many" | "plan">): Pick<H, "uploadItems"> => ({
  uploadItems: ({ scope, commit, fail }, { operationId, part, sha256, lines }) => {
    const hash = createHash("sha256").update(lines).digest();
    if (hash.toString("hex") !== sha256) throw fail("BULK_PART_INVALID", { reason: "its SHA-256 is another one" });
    const ids = readLines(lines);
    return commit(async (tx) => {
      await deps.many.hold(tx, scope, operationId);
      const row = await lockBulk(tx, scope, operationId);
      if (row === null || (ownOf(scope) ?? row.createdBy) !== row.createdBy) throw unknownBulk(operationId);
      const same = await findPart(tx, scope, operationId, part);
      if (same?.sha256.equals(hash) === true) return { operationId: row.operationId, part, added: same.added, total: row.counts.total };
      if (same !== null) throw fail("BULK_PART_INVALID", { reason: "the part with this number has another content" });
      if (row.status !== "draft" || row.target.kind !== "upload") throw fail("INVALID_STATE_TRANSITION", { from: row.status, to: "draft", allowed: [] });
      if (part > 1 && (await findPart(tx, scope, operationId, part - 1)) === null) throw fail("BULK_PART_INVALID", { reason: `part ${part - 1} is missing` });
      const { pending: added } = await insertItems(tx, scope, {
        operationId,
        after: await lastItem(tx, scope, operationId),
        targets: ids.map((id) => [id, null]),
      });
      const total = row.counts.total + added;
      requireTargets(deps, scope, total);
      await updateBulk(tx, scope, operationId, { counts: { ...row.counts, total, pending: total } });
      await insertPart(tx, scope, operationId, { part, sha256: hash, added });
      return { operationId: row.operationId, part, added, total };
    });
  },
});

// Hides an app's secrets in what an agent says of its commands. An agent of another make may mask less than ours, or nothing.
import { z } from "zod";
import { createMasker, type DeviceId, type Masker, ReportedApp } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import type { Hide, HideFor } from "../../core/ports/command-outcomes.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import { openSecrets } from "./app-secrets.ts";
import { maskReason } from "./failures.ts";
import { appsOnDevice, findApp } from "./store/apps.ts";

/** The payload of each command about apps. */
const OfApp = z.union([
  z.object({ app: z.object({ appId: z.string() }) }).transform(({ app }) => app.appId),
  z.object({ appId: z.string() }).transform(({ appId }) => appId),
]);

/** An output is at most 64 levels deep. */
const maskAll = (value: unknown, mask: Masker["mask"]): unknown => {
  if (typeof value === "string") return mask(value);
  if (Array.isArray(value)) return value.map((each) => maskAll(each, mask));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [mask(name), maskAll(each, mask)]));
};

/** Words and numbers of a report stay, as a secret may be a word like `running`; what the agent writes in its own words is masked. */
const maskReport = (given: object, mask: Masker["mask"]): unknown => {
  const { success, data: said } = ReportedApp.safeParse((given as { readonly app?: unknown }).app);
  if (!success) return maskAll(given, mask);
  const { app, ...others } = given as { readonly app: object };
  const { failure, ...report } = said;
  const more = maskAll(Object.fromEntries(Object.entries(app).filter(([name]) => !Object.hasOwn(said, name))), mask) as object; // as: of an object
  const told =
    failure === null ? null : { ...failure, reason: maskReason(failure.reason, mask), message: mask(failure.message), lines: failure.lines.map(mask) };
  return { ...(maskAll(others, mask) as object), app: { ...more, ...report, failure: told } }; // as: of an object
};

const createHide = ({ mask, maskCut }: Masker): Hide => ({
  text: mask,
  code: (code) => maskReason(code, mask),
  output: (output, isCut) => {
    if (typeof output === "string") return isCut ? maskCut(output) : mask(output);
    return typeof output === "object" && output !== null ? maskReport(output, mask) : output;
  },
});

export const createHideFor =
  ({ secretBox }: { readonly secretBox: Pick<SecretBox, "open"> }): HideFor =>
  async (tx, { scope, payload }) => {
    const appId = OfApp.safeParse(payload).data;
    const row = appId === undefined ? null : await findApp(tx, scope, appId);
    return row === null || row.secrets === null ? null : createHide(createMasker(Object.values(openSecrets(secretBox, scope, row))));
  };

/** Hides the secrets of all apps on a device in what its agent reports besides. */
export const createHideOnDevice =
  ({ secretBox }: { readonly secretBox: Pick<SecretBox, "open"> }) =>
  async <T>(tx: Tx, scope: SystemScope, deviceId: DeviceId, given: T): Promise<T> => {
    const rows = (await appsOnDevice(tx, scope, deviceId)).filter(({ secrets }) => secrets !== null);
    if (rows.length === 0) return given;
    const { mask } = createMasker(rows.flatMap((row) => Object.values(openSecrets(secretBox, scope, row))));
    return maskAll(given, mask) as T; // as: texts stay texts
  };

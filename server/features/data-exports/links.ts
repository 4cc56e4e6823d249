// Links that download an export once: signed, so that any node can judge them, and named in the export's row, so that only the newest counts and nobody uses
// it twice.
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { TenantId } from "../../../protocol/index.ts";
import { type Clock, secondsFromNow } from "../../core/clock.ts";
import type { AuditActor } from "../../core/ports/audit.ts";
import { createSignedValues, type DerivedKeys } from "../../core/signed-values.ts";

const LINK_SECONDS = 900;
const ID_BYTES = 16;

const Link = z.object({ tenantId: TenantId, exportId: z.string(), linkId: z.string(), until: z.int(), by: z.object({ type: z.string(), id: z.string() }) });
export type ExportLink = Omit<z.infer<typeof Link>, "by"> & { readonly by: Omit<AuditActor, "email"> };

export const createExportLinks = (secretBox: DerivedKeys, clock: Clock) => {
  const signed = createSignedValues(secretBox, "data export links");
  return {
    make: (of: Pick<ExportLink, "tenantId" | "exportId" | "by">) => {
      const linkId = randomBytes(ID_BYTES).toString("base64url");
      const until = secondsFromNow(LINK_SECONDS, clock.now());
      return { linkId, until, token: signed.make({ ...of, linkId, until: until.getTime() } satisfies ExportLink) };
    },
    /** Null: too old, or none of ours. */
    read: (token: string): ExportLink | null => {
      const { data } = Link.safeParse(signed.read(token));
      return data === undefined || data.until <= clock.now().getTime() ? null : (data as ExportLink); // as: what `make` has signed
    },
  };
};

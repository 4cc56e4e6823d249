// Admission of carriers: the upgrade is signed as that of the agent socket is, and refused in the same words.
import { AppError, isAppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { type Blocks, entityBlocked } from "../../core/ports/security.ts";
import type { HttpRequest, HttpResponse } from "../http/http-message.ts";
import type { createRequestInfo } from "../http/request-info.ts";
import { type AdmissionDeps, createAdmission } from "./admission.ts";
import type { NodeOccupancy } from "./capacity.ts";
import { renderRefusal } from "./socket-transport.ts";

export interface CarrierAdmissionDeps extends Omit<AdmissionDeps, "handshakeFault"> {
  readonly infoOf: ReturnType<typeof createRequestInfo>;
  readonly blocks: Pick<Blocks, "any" | "refusesAddress" | "refuses">;
  readonly occupancy: () => NodeOccupancy;
  readonly databaseError: (error: unknown) => AppError | null;
}

export interface CarrierAdmission {
  /** The device whose agent signed it. Throws AppError. */
  admit(request: HttpRequest, ip: string): Promise<{ readonly key: string; readonly tenantId: string }>;
  refusal(error: AppError, request: HttpRequest): { readonly status: number; readonly headers: HttpResponse["headers"]; readonly body: string };
  toAppError(error: unknown): AppError;
}

const RETRY_SECONDS = 2;

export const createCarrierAdmission = ({ infoOf, blocks, occupancy, databaseError, ...deps }: CarrierAdmissionDeps): CarrierAdmission => {
  const { clock } = deps;
  const admission = createAdmission({ ...deps, handshakeFault: () => null });
  return {
    admit: async (request, ip) => {
      if (blocks.any && blocks.refusesAddress(ip)) throw entityBlocked();
      const { agent } = await admission.admit(request, { ip, sessionId: newId("ses"), node: occupancy() });
      const { deviceId, tenantId } = agent;
      if (blocks.any && blocks.refuses({ tenantId, ip, principal: { kind: "agent", deviceId } })) throw entityBlocked();
      return { key: deviceId, tenantId };
    },
    refusal: (error, request) => {
      const { status, headers, body } = renderRefusal(error, infoOf(request, "/v1"), clock.now());
      return { status, headers, body: String(body ?? "") };
    },
    toAppError: (error) => (isAppError(error) ? error : (databaseError(error) ?? new AppError("INTERNAL_ERROR", { retryAfter: RETRY_SECONDS, cause: error }))),
  };
};

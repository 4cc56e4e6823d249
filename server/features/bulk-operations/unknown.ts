// The one answer for an operation that does not exist and one that the caller does not see.
import { AppError } from "../../core/errors.ts";

export const unknownBulk = (operationId: string): AppError => new AppError("BULK_OPERATION_NOT_FOUND", { details: { operationId } });

// What the client knows of the contract. In the package, declarations.ts puts plain types in the place of this file.
export type { AppErrorData, AppRouter, ErrorCode, PlanResource } from "../index.ts";

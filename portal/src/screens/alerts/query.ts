// The filters of the URL as the API takes them.
import { given } from "../../api/search.ts";
import type { AlertSearch } from "./search.ts";

export const STATUSES = ["open", "acknowledged", "resolved"] as const;
export const SEVERITIES = ["critical", "warning", "info"] as const;

/** The words of `allowed` that a parameter names. */
const among = <const T extends string>(named: string | undefined, allowed: readonly T[]): T[] => allowed.filter((each) => named?.split(",").includes(each));

/** Who names no state wants to see what is not over. */
export const queryOf = ({ status, severity, ruleId, deviceId }: AlertSearch) => {
  const severities = among(severity, SEVERITIES);
  const statuses = among(status, STATUSES);
  return given({
    status: statuses.length > 0 ? statuses : (["open", "acknowledged"] as (typeof STATUSES)[number][]),
    severity: severities.length > 0 ? severities : undefined,
    ruleId,
    deviceId,
  });
};

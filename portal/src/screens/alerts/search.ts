// What the URL of this screen says.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const TABS = ["alerts", "rules", "silences", "channels"] as const;
export type Tab = (typeof TABS)[number];
export const STATUSES = ["open", "acknowledged", "resolved"] as const;
export const SEVERITIES = ["critical", "warning", "info"] as const;

export const readAlertSearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], TABS.slice(1)),
    /** The id of the alert, rule, silence or channel that is open. */
    open: textOf(search["open"]),
    status: textOf(search["status"]),
    severity: textOf(search["severity"]),
    ruleId: textOf(search["ruleId"]),
    deviceId: textOf(search["deviceId"]),
  });
export type AlertSearch = ReturnType<typeof readAlertSearch>;

/** The words of `allowed` that a parameter names. */
const among = <const T extends string>(named: string | undefined, allowed: readonly T[]): T[] => allowed.filter((each) => named?.split(",").includes(each));

/** The filters as the API takes them. Who names no state wants to see what is not over. */
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

// The log of an app, as it is written, with the reason when no lines come.
import type { LogBatch } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import { type AppLog, useAppLog } from "../../api/app-log.ts";
import { codeOf } from "../../api/client.ts";
import { Failure } from "../../ui/failure.tsx";
import { LogLines, LogView } from "../../ui/log-view.tsx";
import { Panel, Skeleton } from "../../ui/parts.tsx";
import { text } from "./app-text.ts";

const NOTICES: Readonly<Record<NonNullable<LogBatch["notice"]>, string>> = {
  not_installed: text.notInstalled,
  device_offline: text.logsOffline,
  refused: text.logsRefused,
  nodes_apart: text.logsIncomplete,
};

/** A device that is away is no failure: the lines come with it. */
const isAway = (error: unknown): boolean => codeOf(error) === "DEVICE_OFFLINE";

const said = ({ notice, error }: Pick<AppLog, "notice" | "error">): string => (notice !== null ? NOTICES[notice] : isAway(error) ? text.logsOffline : "");

export const AppLogs = ({ appId, name }: { readonly appId: string; readonly name: string }) => {
  const { lines, skipped, notice, error, begun, again } = useAppLog(appId);
  return (
    <Panel title={text.logs}>
      {error === null || isAway(error) ? null : <Failure error={error} retry={again} />}
      <p role="status">{said({ notice, error })}</p>
      {begun ? <LogView label={text.lines} lines={lines} fileName={`${name.replaceAll(/[^\w.-]+/g, "-")}.log`} /> : <Skeleton rows={8} />}
      {begun && lines.length === 0 ? <p className="muted">{text.noLines}</p> : null}
      {skipped === 0 ? null : <p className="muted">{text.skipped(skipped)}</p>}
    </Panel>
  );
};

const LAST_LINES = 12;
/** The end of the log, on the way to all of it. */
export const AppLogTail = ({ appId }: { readonly appId: string }) => {
  const { lines, notice, error, begun, again } = useAppLog(appId);
  return (
    <Panel
      title={text.log}
      beside={
        <Link to="/apps/$appId" params={{ appId }} search={{ tab: "logs" }}>
          {text.fullLog}
        </Link>
      }
    >
      {error === null || isAway(error) ? null : <Failure error={error} retry={again} />}
      <p role="status">{said({ notice, error })}</p>
      {begun ? (
        lines.length === 0 ? (
          <p className="muted">{text.noLines}</p>
        ) : (
          <LogLines label={text.lastLinesNow} lines={lines.slice(-LAST_LINES)} />
        )
      ) : (
        <Skeleton rows={8} />
      )}
    </Panel>
  );
};

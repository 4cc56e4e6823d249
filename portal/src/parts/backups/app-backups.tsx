// The backups on the page of an app: the age of the last good one, whether the newest failed, and the way back.
import type { App } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { bytesText } from "../../ui/bytes.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { BackUpNow } from "./back-up-now.tsx";
import { BackupList } from "./backup-list.tsx";
import { text } from "./backup-text.ts";

interface OfApp {
  readonly app: App;
}

const useLastBackup = ({ appId }: Pick<App, "appId">) => {
  const may = useMay()("backup:read");
  const good = useQuery({ ...api.backups.list.queryOptions({ appId, status: ["completed"], pageSize: 1 }), enabled: may });
  const newest = useQuery({ ...api.backups.list.queryOptions({ appId, pageSize: 1 }), enabled: may });
  return { may, good, last: good.data?.items[0], total: good.data?.total ?? 0, newest: newest.data?.items[0] };
};

/** When the last good backup was made, in the line of facts. */
export const LastBackup = ({ app }: OfApp) => {
  const { good, last } = useLastBackup(app);
  if (good.data === undefined) return null;
  return last === undefined ? (
    text.noBackup
  ) : (
    <>
      {text.lastGood} <Ago at={last.completedAt ?? last.createdAt} />
    </>
  );
};

export const AppBackupsPanel = ({ app }: OfApp) => {
  const { appId } = app;
  const may = useMay();
  const { may: mayRead, good, last, total, newest } = useLastBackup(app);
  if (!mayRead) return null;
  return (
    <Panel
      title={text.backups}
      beside={
        <Link to="/apps/$appId" params={{ appId }} search={{ tab: "backups" }}>
          {text.all(total)}
        </Link>
      }
    >
      <Loaded read={good} rows={2}>
        {() => (
          <>
            {newest !== undefined && newest.status === "failed" ? (
              <p>
                <Status status="failed" word={text.newestFailed} />{" "}
                <Link to="/backups/$backupId" params={{ backupId: newest.backupId }}>
                  {text.look}
                </Link>
              </p>
            ) : null}
            {last === undefined ? (
              <p className="muted">{text.never}</p>
            ) : (
              <p>
                <Status status="completed" word={text.good} /> <Ago at={last.completedAt ?? last.createdAt} />
                {last.addedBytes === null ? null : `, ${text.addedTo(bytesText(last.addedBytes), undefined)}`}
                <br />
                <span className="muted">
                  {text.kept(total)}
                  {last.verification.status === "unverified" ? `, ${text.unverified}` : null}
                </span>
              </p>
            )}
            <div className="row">
              <BackUpNow app={app} />
              {last !== undefined && may("backup:restore") ? (
                <Link to="/backups/$backupId" params={{ backupId: last.backupId }} search={{ restore: true }}>
                  {text.restore}
                </Link>
              ) : null}
            </div>
          </>
        )}
      </Loaded>
    </Panel>
  );
};

export const AppBackups = ({ app }: OfApp) => (
  <>
    <div>
      <BackUpNow app={app} />
    </div>
    <BackupList of={{ appId: app.appId }} />
  </>
);

// One backup: whether it is good and can be trusted, what is in it, and what people do with it.
import type { BackupWithActors as Backup, RestoreWithActors as Restore } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { identifierInWords } from "../../../../protocol/kit/identifier-words.ts";
import { api, mooring } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { BackUpNow, readBackupsAgain } from "../../parts/backups/back-up-now.tsx";
import { appNameOf } from "../../parts/backups/backup-columns.tsx";
import { text as words } from "../../parts/backups/backup-text.ts";
import { actorText } from "../../parts/text.ts";
import { bytesText } from "../../ui/bytes.ts";
import { DetailPage, Pill } from "../../ui/detail-page.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Failure } from "../../ui/failure.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { MenuItem } from "../../ui/menu-items.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Copyable, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status, toneOf } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { Change, Download, Remove } from "./dialogs.tsx";
import { RestoreDialog } from "./restore.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/backups/$backupId");
const isGood = ({ status }: Backup): boolean => status === "completed" || status === "partially_failed";
const isMoving = ({ status }: Backup): boolean => ["pending", "in_progress", "cancelling", "deleting"].includes(status);
const FOLLOW_MS = 2_000;

interface OfBackup {
  readonly backup: Backup;
}
const DIALOGS = { remove: Remove, change: Change, download: Download, restore: RestoreDialog } as const;

/** What is wrong with it, with the next step. */
const Problems = ({ backup }: OfBackup) => {
  const { status, failure, verification, warnings, appId, deviceId } = backup;
  const again = <BackUpNow app={{ appId, deviceId }} />;
  const next = failure?.reason === "REPOSITORY_MISSING" ? <Link to="/backups/destinations">{text.openDestinations}</Link> : again;
  return (
    <>
      {failure === null ? null : (
        <Notice
          tone="bad"
          title={text.failedAt(failure.stage === null ? null : identifierInWords(failure.stage))}
          actions={status === "failed" ? next : undefined}
        >
          <p>
            {failure.message} <code>{failure.reason}</code>
          </p>
          {failure.lines.length === 0 ? null : <pre>{failure.lines.join("\n")}</pre>}
        </Notice>
      )}
      {verification.status === "failed" ? (
        <Notice tone="bad" title={text.notTrusted} actions={again}>
          <p>
            {verification.failure?.message} <code>{verification.failure?.reason}</code>
          </p>
        </Notice>
      ) : null}
      {warnings.length === 0 ? null : (
        <Notice tone="warn" title={text.missing(warnings.length)}>
          <pre>{warnings.join("\n")}</pre>
        </Notice>
      )}
    </>
  );
};

const RESTORES: readonly Column<Restore>[] = [
  {
    title: "Restore",
    phone: true,
    cell: ({ restoreType, dryRun }) => `${text.whats.find(([value]) => value === restoreType)?.[1]}${dryRun ? `, ${text.dryRun}` : ""}`,
  },
  { title: words.status, phone: true, cell: ({ status }) => <Status status={status} /> },
  { title: "Why", cell: ({ failure }) => failure?.message },
  { title: "By", cell: ({ actor }) => actorText(actor) },
  { title: "Ordered", width: AGO_WIDTH, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];
const Restores = ({ backup: { backupId } }: OfBackup) => {
  const list = usePages<Restore>((page) => api.backups.listRestores.queryOptions({ backupId, page, pageSize: PAGE_SIZE }));
  return (
    <Panel title={text.restores}>
      <List label={text.restores} columns={RESTORES} list={list} rows={2} fill={false} id={({ restoreId }) => restoreId} none={text.noRestores} />
    </Panel>
  );
};

const Content = ({ backup }: OfBackup) => {
  const { backupId, type, size, addedBytes, files, consistency, downtimeSeconds, retainUntil, verification, content, checksum, trigger, actor } = backup;
  return (
    <Panel title={text.facts}>
      <Facts
        of={{
          Content: text.type[type],
          "App then": content === null ? null : `${content.template} ${content.templateVersion}, revision ${content.revision}`,
          Size: size === null ? null : bytesText(size),
          "New in the destination": addedBytes === null ? null : bytesText(addedBytes),
          Files: files === null ? null : text.files(files),
          Data: consistency === null ? null : `${text.consistency[consistency]}${downtimeSeconds === null ? "" : `, ${text.stood(downtimeSeconds)}`}`,
          Verified: verification.status === "unverified" ? words.unverified : <Status status={verification.status} />,
          "Verified at": verification.verifiedAt === null ? null : <Ago at={verification.verifiedAt} />,
          [text.held]: retainUntil === null ? null : <Ago at={retainUntil} />,
          Made: `${words.triggers[trigger]}, ${actorText(actor)}`,
          Checksum: checksum === null ? null : <Copyable text={checksum} />,
          Id: <Copyable text={backupId} />,
        }}
      />
    </Panel>
  );
};

/** What the state and the role allow. */
const useVerbs = (backup: Backup | undefined, open: (dialog: keyof typeof DIALOGS) => void) => {
  const may = useMay();
  const act = useMutation({
    mutationFn: (verb: "cancel" | "checksum" | "restore_test"): Promise<unknown> => {
      const backupId = backup?.backupId ?? "";
      return verb === "cancel" ? mooring.backups.cancel.mutate({ backupId }) : mooring.backups.verify.mutate({ backupId, mode: verb });
    },
    onSuccess: readBackupsAgain,
  });
  if (backup === undefined) return { act, actions: undefined, more: undefined };
  const good = isGood(backup);
  const mayVerify = good && may("backup:verify") && backup.verification.status !== "verifying";
  const more = [
    mayVerify ? (
      <MenuItem key="test" onChoose={() => act.mutate("restore_test")}>
        {text.verifyDeep}
      </MenuItem>
    ) : null,
    good && may("backup:restore") ? (
      <MenuItem key="download" onChoose={() => open("download")}>
        {text.download}
      </MenuItem>
    ) : null,
    may("backup:update") ? (
      <MenuItem key="change" onChoose={() => open("change")}>
        {text.change}
      </MenuItem>
    ) : null,
    may("backup:create") && (backup.status === "pending" || backup.status === "in_progress") ? (
      <MenuItem key="cancel" onChoose={() => act.mutate("cancel")}>
        {text.cancel}
      </MenuItem>
    ) : null,
    may("backup:delete") && !isMoving(backup) && backup.status !== "deleted" ? (
      <MenuItem key="remove" onChoose={() => open("remove")}>
        {text.remove}
      </MenuItem>
    ) : null,
  ].filter((item) => item !== null);
  const actions = (
    <>
      {mayVerify ? (
        <button type="button" disabled={act.isPending} onClick={() => act.mutate("checksum")}>
          {text.verify}
        </button>
      ) : null}
      {good && may("backup:restore") ? (
        <button type="button" data-kind="primary" onClick={() => open("restore")}>
          {text.restore}
        </button>
      ) : null}
    </>
  );
  return { act, actions, more: more.length === 0 ? undefined : more };
};

export const BackupScreen = () => {
  const { backupId } = route.useParams();
  const { restore } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const [asked, setOpened] = useState<keyof typeof DIALOGS | null>(null);
  // How far it is has no event.
  const read = useQuery({
    ...api.backups.get.queryOptions({ backupId }),
    refetchInterval: ({ state: { data } }) => (data !== undefined && isMoving(data) ? FOLLOW_MS : false),
  });
  const backup = read.data;
  const device = useQuery({ ...api.devices.get.queryOptions({ deviceId: backup?.deviceId ?? "" }), enabled: backup !== undefined && may("device:read") }).data;
  const { act, actions, more } = useVerbs(backup, setOpened);
  const opened = asked ?? (restore === true ? "restore" : null);
  const close = (): void => {
    setOpened(null);
    if (restore === true) void navigate({ to: "/backups/$backupId", params: { backupId }, replace: true });
  };
  const Shown = opened === null ? null : DIALOGS[opened];
  return (
    <DetailPage
      path={[
        <Link key="backups" to="/backups">
          {text.title}
        </Link>,
      ]}
      title={backup?.name ?? text.one}
      pill={backup === undefined ? undefined : <Pill tone={toneOf(backup.status)}>{identifierInWords(backup.status)}</Pill>}
      facts={
        backup === undefined
          ? []
          : [
              {
                icon: "time",
                words: <Ago at={backup.completedAt ?? backup.createdAt} />,
              },
              {
                words: (
                  <Link to="/apps/$appId" params={{ appId: backup.appId }}>
                    {appNameOf(backup)}
                  </Link>
                ),
              },
              {
                icon: "system",
                words: (
                  <Link to="/devices/$deviceId" params={{ deviceId: backup.deviceId }}>
                    {device === undefined ? words.device : deviceLabel(device)}
                  </Link>
                ),
              },
              ...(backup.commandId === null || !may("command:read")
                ? []
                : [
                    {
                      words: (
                        <Link to="/commands" search={{ command: backup.commandId }}>
                          {text.itsCommand}
                        </Link>
                      ),
                    },
                  ]),
            ]
      }
      actions={actions}
      more={more}
    >
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            {act.error === null ? null : <Failure key={act.submittedAt} error={act.error} />}
            <Problems backup={found} />
            {found.status === "in_progress" && found.progress?.percent != null ? (
              <p role="status">
                {words.percent(found.progress.percent)}
                {found.progress.bytesDone === null ? null : `, ${bytesText(found.progress.bytesDone)}`}
              </p>
            ) : null}
            <Content backup={found} />
            <Restores backup={found} />
            {Shown === null ? null : <Shown backup={found} onClose={close} />}
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};

// The revisions of a deployment, what each changed, and the way back to one.
import type { AppDetails, DeploymentRevision, DeploymentRevisionWithActors as Revision } from "@mooring/client";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { changesBetween } from "../../parts/config-changes.ts";
import { actorText } from "../../parts/text.ts";
import { Diff } from "../../ui/diff.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Panel } from "../../ui/parts.tsx";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { RollBack, useMayRollBack } from "./roll-back.tsx";
import { text } from "./text.ts";

export const contentOf = ({ templateVersion, configuration }: DeploymentRevision) => ({ version: templateVersion, config: configuration });

const WayBack = ({ app, of }: { readonly app: AppDetails; readonly of: Revision }) => {
  const [isAsking, setAsking] = useState(false);
  const mayRollBack = useMayRollBack(app);
  const { revision } = of;
  if (!mayRollBack || revision === app.revision) return null;
  return (
    <div className="row">
      <button type="button" onClick={() => setAsking(true)}>
        {text.rollTo(revision, app.revision)}
      </button>
      {isAsking ? <RollBack app={app} to={{ revision, ...contentOf(of) }} onClose={() => setAsking(false)} /> : null}
    </div>
  );
};

interface OneProps {
  readonly of: Revision;
  readonly before: Revision | undefined;
  readonly app: AppDetails | undefined;
  readonly onClose: () => void;
}
const One = ({ of, before, app, onClose }: OneProps) => {
  const changes = changesBetween(before === undefined ? { version: "", config: {} } : contentOf(before), contentOf(of));
  return (
    <Panel
      title={text.revisionOf(of.revision)}
      beside={
        <button type="button" data-kind="plain" onClick={onClose}>
          {text.closeRevision}
        </button>
      }
    >
      {changes.length === 0 ? (
        <p className="muted">{text.same}</p>
      ) : (
        <Diff
          caption={before === undefined ? text.first : text.against(before.revision)}
          rows={changes}
          before={before === undefined ? null : text.before}
          after={text.after}
        />
      )}
      {app === undefined ? null : <WayBack app={app} of={of} />}
    </Panel>
  );
};

const columnsOf = (current: number | undefined): readonly Column<Revision>[] => [
  { title: text.revision, width: "90px", phone: true, cell: ({ revision }) => <strong>{revision}</strong> },
  {
    title: "State",
    width: "110px",
    phone: true,
    cell: ({ revision, rolledBackTo }) =>
      revision === current ? <Status status="active" word={text.isNow} /> : rolledBackTo === null ? null : text.repeats(rolledBackTo),
  },
  { title: "Version", width: "110px", cell: ({ templateVersion }) => templateVersion },
  { title: "By", cell: ({ actor }) => actorText(actor) },
  { title: "Created", width: AGO_WIDTH, phone: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

interface AppRevisionsProps {
  readonly deploymentId: string;
  /** The app that goes back to one. */
  readonly app?: AppDetails;
}
export const AppRevisions = ({ deploymentId, app }: AppRevisionsProps) => {
  const { revision: opened } = useSearch({ strict: false });
  const navigate = useNavigate();
  const list = usePages<Revision>((page) => api.deployments.listRevisions.queryOptions({ deploymentId, page, pageSize: PAGE_SIZE }));
  const open = useCallback(
    (revision?: string): void =>
      // as: both pages that show revisions read these
      void navigate({ to: ".", search: { tab: "history", ...(revision === undefined ? {} : { revision }) } as never }),
    [navigate],
  );
  const close = useCallback(() => open(), [open]);
  const current = app?.revision;
  const columns = useMemo(() => columnsOf(current), [current]);
  // Newest first, so the one before it comes after it.
  const at = Array.from({ length: list.count }, (_, index) => index).find((index) => String(list.row(index)?.revision) === opened);
  const shown = at === undefined ? undefined : list.row(at);
  return (
    <Split
      onClose={close}
      detail={at === undefined || shown === undefined ? null : <One key={opened} of={shown} before={list.row(at + 1)} app={app} onClose={close} />}
      list={
        <List
          label={text.revisions}
          columns={columns}
          list={list}
          rows={5}
          fill={false}
          id={({ revision }) => String(revision)}
          onOpen={({ revision }) => open(String(revision))}
          opened={opened}
          none={text.noRevisions}
        />
      }
    />
  );
};

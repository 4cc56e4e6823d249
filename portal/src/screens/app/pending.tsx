// A change of the app that is not applied yet: what would differ, and the way to apply, edit or discard it.
import type { AppDetails } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import { canApp } from "../../parts/apps/app-verbs.ts";
import { Diff } from "../../ui/diff.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Panel } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import { type Draft, discard, draftRows, useApply, useDraft } from "./draft.ts";
import { text } from "./text.ts";

interface DraftDiffProps {
  readonly app: AppDetails;
  readonly draft: Draft;
}
export const DraftDiff = ({ app, draft }: DraftDiffProps) => (
  <>
    {draft.revision === app.revision ? null : <p role="status">{text.overtaken(app.revision)}</p>}
    <Diff caption={text.planned} rows={draftRows(app, draft)} before={text.now} after={text.later} />
  </>
);

export const PendingChange = ({ app }: { readonly app: AppDetails }) => {
  const { appId, status, revision } = app;
  const draft = useDraft(app);
  const apply = useApply(app);
  if (draft === undefined) return null;
  const isReady = canApp(status, "update");
  return (
    <Panel title={text.pending}>
      <p className="muted">
        {text.edited(draftRows(app, draft).length)} <Ago at={draft.at} />. {text.notApplied}
      </p>
      <DraftDiff app={app} draft={draft} />
      {apply.error === null ? null : <Failure error={apply.error} />}
      <div className="row">
        <button type="button" data-kind="primary" disabled={!isReady || apply.isPending} onClick={() => apply.mutate(draft)}>
          {text.apply}
        </button>
        <Link to="/apps/$appId" params={{ appId }} search={{ tab: "configuration" }} data-kind="button">
          {text.edit}
        </Link>
        <button type="button" data-kind="plain" onClick={() => discard(app)}>
          {text.discard}
        </button>
        <span className="muted">{isReady ? text.comesBack(revision) : text.cannotUpdate}</span>
      </div>
    </Panel>
  );
};

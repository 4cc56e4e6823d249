// The history of an app: the revisions of its deployment or its snapshots, each with the way back, and its steps.
import type { AppDetails } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { AppSteps, AppWaits } from "../../parts/apps/app-steps.tsx";
import { changesBetween } from "../../parts/config-changes.ts";
import { actorText } from "../../parts/text.ts";
import { PageIcon } from "../../ui/icon.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Shape, type Tone } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./app.module.css";
import { AppRevisions, contentOf } from "./revisions.tsx";
import { type Former, RollBack, useMayRollBack } from "./roll-back.tsx";
import { AppSnapshots } from "./snapshots.tsx";
import { shownState } from "./state.ts";
import { text } from "./text.ts";

interface OfApp {
  readonly app: AppDetails;
}

interface Entry extends Former {
  readonly what: string;
  readonly by: string;
  readonly at: string;
}
const SHOWN = 4;

/** The newest revisions or snapshots; one more than is shown, to say what the last one changed. */
const useEntries = ({ appId, deploymentId }: AppDetails) => {
  const may = useMay();
  const hasRevisions = deploymentId !== null && may("deployment:read");
  const revisions = useQuery({
    ...api.deployments.listRevisions.queryOptions({ deploymentId: deploymentId ?? "", pageSize: SHOWN + 1 }),
    enabled: hasRevisions,
  });
  const snapshots = useQuery({ ...api.apps.listSnapshots.queryOptions({ appId }), enabled: deploymentId === null });
  const ofRevisions = revisions.data?.items.map((each, at, all): Entry => {
    const before = all[at + 1];
    const fields = before === undefined ? [] : changesBetween(contentOf(before), contentOf(each)).map(({ field }) => field);
    const { revision, rolledBackTo, createdAt, actor } = each;
    return { revision, ...contentOf(each), at: createdAt, by: actorText(actor), what: text.what(revision, rolledBackTo, fields) };
  });
  const ofSnapshots = snapshots.data?.items.map(
    ({ revision, snapshotId, templateVersion, config, createdAt, actor, automatic, metadata }): Entry => ({
      revision,
      snapshotId,
      version: templateVersion,
      config,
      at: createdAt,
      by: automatic ? text.byItself : actorText(actor),
      what: metadata["note"] ?? "",
    }),
  );
  return {
    total: hasRevisions ? revisions.data?.total : snapshots.data?.items.length,
    read: {
      data: hasRevisions ? ofRevisions : ofSnapshots,
      error: (hasRevisions ? revisions : snapshots).error,
      refetch: (hasRevisions ? revisions : snapshots).refetch,
    },
    isShown: hasRevisions || deploymentId === null,
  };
};

/** The newest steps back, beside what runs now. */
export const HistoryPanel = ({ app }: OfApp) => {
  const { appId, revision: current, failure } = app;
  const { total, read, isShown } = useEntries(app);
  const mayRollBack = useMayRollBack(app);
  const [chosen, choose] = useState<Former | null>(null);
  const runs = shownState(app).tone;
  if (!isShown) return null;
  const toneOf = ({ revision, snapshotId }: Former): Tone =>
    snapshotId === undefined && revision === current ? runs : revision === failure?.revision ? "bad" : "idle";
  return (
    <Panel
      title={text.tabs.history}
      beside={
        <Link to="/apps/$appId" params={{ appId }} search={{ tab: "history" }}>
          {text.all(total)}
        </Link>
      }
    >
      <Loaded read={read} rows={SHOWN}>
        {(entries) => (
          <>
            {entries.length === 0 ? <p className="muted">{text.noSnapshots}</p> : null}
            <ol className={css["history"]}>
              {entries.slice(0, SHOWN).map((entry) => {
                const { revision, snapshotId, version, at, by, what } = entry;
                const isNow = snapshotId === undefined && revision === current;
                return (
                  <li key={snapshotId ?? revision} aria-current={isNow || undefined}>
                    <Shape tone={toneOf(entry)} />
                    <span>
                      <strong>{snapshotId === undefined ? text.revisionOf(revision) : text.snapshotOf(revision)}</strong> {version}
                      <br />
                      <span className="muted">
                        {by} {what}
                      </span>
                    </span>
                    <span className={css["way"]}>
                      <span className="muted">
                        <Ago at={at} />
                      </span>
                      {isNow ? (
                        <span className="muted">{text.isNow}</span>
                      ) : mayRollBack ? (
                        <button type="button" data-size="small" aria-label={text.rollTo(revision, current)} onClick={() => choose(entry)}>
                          <PageIcon name="undo" />
                          {text.roll(revision, current)}
                        </button>
                      ) : null}
                    </span>
                  </li>
                );
              })}
            </ol>
          </>
        )}
      </Loaded>
      {chosen === null ? null : <RollBack app={app} to={chosen} onClose={() => choose(null)} />}
    </Panel>
  );
};

export const StepsPanel = ({ app: { appId } }: OfApp) => {
  const read = useQuery(api.apps.timeline.queryOptions({ appId }));
  return (
    <Panel title={text.steps}>
      <Loaded read={read}>{(timeline) => <AppSteps timeline={timeline} />}</Loaded>
    </Panel>
  );
};

export const AppHistory = ({ app }: OfApp) => {
  const may = useMay();
  const { appId, deploymentId } = app;
  const timeline = useQuery(api.apps.timeline.queryOptions({ appId })).data;
  return (
    <>
      {timeline === undefined ? null : <AppWaits timeline={timeline} />}
      {deploymentId !== null && may("deployment:read") ? <AppRevisions deploymentId={deploymentId} app={app} /> : null}
      <AppSnapshots app={app} />
      <StepsPanel app={app} />
    </>
  );
};

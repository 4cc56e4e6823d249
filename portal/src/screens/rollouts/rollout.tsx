// One rollout: why it stands and until when, its phases, what failed, and its devices.
import type { Rollout, RolloutDevice, RolloutFailure } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { oneOf } from "../../api/search.ts";
import { actorText } from "../../parts/text.ts";
import { numbers } from "../../ui/count.ts";
import { DetailPage, Pill } from "../../ui/detail-page.tsx";
import { Figure, Figures } from "../../ui/figures.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Copyable, Empty, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status, toneOf } from "../../ui/status.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { AGO_WIDTH, Ago, exactTime } from "../../ui/time.tsx";
import { RolloutActions } from "./actions.tsx";
import { EVENT_WORDS, subjectText, text } from "./text.ts";

const TABS = ["overview", "devices", "failures", "timeline"] as const;
const route = getRouteApi("/rollouts/$rolloutId");
type Id = Rollout["rolloutId"];

/** Why nothing happens, and until when. */
const Why = ({ of: { status, statusReason, reasonText, waitingFor, until, failurePercent, lastError } }: { readonly of: Rollout }) => (
  <>
    {statusReason === null ? null : (
      <Notice tone={status === "paused" ? "warn" : "bad"} title={text.reasons[statusReason]}>
        {reasonText}
        {failurePercent === null ? null : <p>{text.failurePercent(failurePercent)}</p>}
      </Notice>
    )}
    {waitingFor === null ? null : (
      <Notice tone="busy" title={text.waits[waitingFor]}>
        {until === null ? null : (
          <p>
            {text.until} {exactTime(until)}
          </p>
        )}
      </Notice>
    )}
    {lastError === null ? null : (
      <Notice tone="bad" title={text.stuck}>
        {lastError}
      </Notice>
    )}
  </>
);

/** As the status that has its shape. */
const PHASE_STATUS: Readonly<Record<Rollout["phases"][number]["status"], string>> = {
  passed: "completed",
  pending: "skipped",
  running: "running",
  soaking: "running",
  awaiting_approval: "draft",
  failed: "failed",
};
const Phases = ({ of: { phases, phase: current } }: { readonly of: Rollout }) => (
  <Panel title={text.phases}>
    <ol className="stack">
      {phases.map(({ phase, size, status, succeeded, failed, open, minSuccessPercent, soakUntil }) => (
        <li key={phase} aria-current={phase === current ? "step" : undefined}>
          <div className="row">
            <strong>{text.phase(phase)}</strong>
            <Status status={PHASE_STATUS[status]} word={text.phaseStates[status]} />
            <span>{text.phaseLine(succeeded, failed, open, size)}</span>
            <span className="muted">{text.atLeast(minSuccessPercent)}</span>
            {status === "soaking" && soakUntil !== null ? (
              <span>
                {text.until} {exactTime(soakUntil)}
              </span>
            ) : null}
          </div>
          <progress max={Math.max(1, size)} value={succeeded + failed} aria-label={text.phase(phase)} />
        </li>
      ))}
    </ol>
  </Panel>
);

const COLUMNS: readonly Column<RolloutDevice>[] = [
  { title: "Device", width: "minmax(140px, 2fr)", phone: true, cell: ({ name, deviceId }) => <strong>{name ?? deviceId}</strong> },
  {
    title: text.state,
    width: "150px",
    phone: true,
    cell: ({ status, late }) => <Status status={status} {...(late && status === "pending" ? { word: text.late } : {})} />,
  },
  { title: "Phase", width: "60px", cell: ({ phase }) => phase },
  { title: "Code", width: "minmax(90px, 1.5fr)", phone: true, cell: ({ code, message }) => <span title={message ?? undefined}>{code}</span> },
  { title: "Progress", width: "minmax(0, 1fr)", cell: ({ progress }) => <span className="muted">{progress}</span> },
  { title: "Ended", width: AGO_WIDTH, cell: ({ finishedAt }) => (finishedAt === null ? null : <Ago at={finishedAt} />) },
];

const Devices = ({ rolloutId, late }: { readonly rolloutId: Id; readonly late?: true }) => {
  const navigate = useNavigate();
  const query = { rolloutId, pageSize: PAGE_SIZE, ...(late === undefined ? {} : { late }) };
  const list = useCursorList<RolloutDevice>(api.rollouts.devices.infiniteQueryOptions(query, fromCursor));
  return (
    <Panel title={late === true ? text.late_devices : text.devices}>
      <List
        label={late === true ? text.late_devices : text.devices}
        columns={COLUMNS}
        list={list}
        fill={false}
        rows={late === true ? 3 : 12}
        id={({ deviceId }) => deviceId}
        onOpen={({ deviceId, commandId }) =>
          void navigate({ to: "/devices/$deviceId", params: { deviceId }, search: commandId === null ? {} : { command: commandId } })
        }
        none={text.noDevices}
      />
    </Panel>
  );
};

/** One click from a failed device to its app's log, or to the order of its agent. */
const FailedDevice = ({ of: { deviceId, name, appId, commandId } }: { readonly of: RolloutFailure["devices"][number] }) =>
  appId === null ? (
    <Link to="/devices/$deviceId" params={{ deviceId }} search={commandId === null ? {} : { command: commandId }}>
      {name ?? deviceId}
    </Link>
  ) : (
    <Link to="/apps/$appId" params={{ appId }} search={{ tab: "logs" }}>
      {text.logOf(name ?? deviceId)}
    </Link>
  );

const Failures = ({ rolloutId }: { readonly rolloutId: Id }) => {
  const read = useQuery(api.rollouts.failures.queryOptions({ rolloutId }));
  return (
    <Loaded read={read}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty>{text.noFailures}</Empty>
        ) : (
          items.map(({ code, count, message, lines, common, devices }) => (
            <Panel key={code} title={`${code}: ${numbers.format(count)}`}>
              {message === null ? null : <p>{message}</p>}
              {common.length === 0 ? null : <p>{text.common(common)}</p>}
              {lines.length === 0 ? null : <pre>{lines.join("\n")}</pre>}
              <p className="row">
                {devices.map((device) => (
                  <FailedDevice key={device.deviceId} of={device} />
                ))}
              </p>
            </Panel>
          ))
        )
      }
    </Loaded>
  );
};

const Timeline = ({ rolloutId }: { readonly rolloutId: Id }) => {
  const read = useQuery(api.rollouts.steps.queryOptions({ rolloutId }));
  return (
    <Loaded read={read}>
      {({ items }) => (
        <ol className="stack">
          {items.map(({ at, event, to, reason, actor, counts }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a step has no other identity
            <li key={index}>
              <Ago at={at} /> <strong>{EVENT_WORDS[event] ?? text.states[to]}</strong> {text.states[to]} <span className="muted">{actorText(actor)}</span>{" "}
              {reason === null ? null : <span>{reason}</span>}{" "}
              <span className="muted">
                {text.phaseLine(counts.succeeded, counts.failed + counts.timedOut, counts.ordered + counts.verifying, counts.total)}
              </span>
            </li>
          ))}
        </ol>
      )}
    </Loaded>
  );
};

const Overview = ({ of }: { readonly of: Rollout }) => {
  const { counts, rolloutId } = of;
  const figures = [
    [text.counts.succeeded, counts.succeeded],
    [text.counts.underWay, counts.ordered + counts.verifying],
    [text.counts.pending, counts.pending - counts.late],
    [text.counts.late, counts.late],
    [text.counts.failed, counts.failed + counts.timedOut],
    [text.counts.skipped, counts.skipped + counts.aborted],
  ] as const;
  return (
    <>
      <Figures label={text.progress}>
        {figures.map(([name, value]) => (
          <Figure key={name} name={name} value={numbers.format(value)} />
        ))}
      </Figures>
      <Phases of={of} />
      {counts.late === 0 ? null : <Devices rolloutId={rolloutId} late />}
      <Panel title={text.settings}>
        <Facts
          of={{
            Id: <Copyable text={rolloutId} />,
            [text.version]: of.target.version,
            [text.fleet]: (
              <Link to="/fleets/$fleetId" params={{ fleetId: of.fleetId }}>
                {of.fleetId}
              </Link>
            ),
            [text.subject]: subjectText(of.subject),
            [text.parallel]: of.settings.maxParallel,
            [text.threshold]: `${of.settings.failureThreshold.percent} %`,
            [text.created]: <Ago at={of.createdAt} />,
          }}
        />
      </Panel>
    </>
  );
};

export const RolloutScreen = () => {
  const { rolloutId } = route.useParams() as { readonly rolloutId: Id };
  const tab = oneOf(route.useSearch().tab, TABS) ?? "overview";
  const read = useQuery(api.rollouts.get.queryOptions({ rolloutId }));
  const rollout = read.data;
  return (
    <DetailPage
      path={[
        <Link key="rollouts" to="/rollouts">
          {text.title}
        </Link>,
      ]}
      title={rollout?.name ?? text.one}
      pill={rollout === undefined ? undefined : <Pill tone={toneOf(rollout.status)}>{text.states[rollout.status]}</Pill>}
      actions={rollout === undefined ? undefined : <RolloutActions of={rollout} />}
      tabs={<Tabs label={text.tabList} tabs={TABS} words={text.tabs} current={tab} />}
    >
      <Loaded read={read}>
        {(shown) => (
          <>
            <Why of={shown} />
            {tab === "overview" ? <Overview of={shown} /> : null}
            {tab === "devices" ? <Devices rolloutId={rolloutId} /> : null}
            {tab === "failures" ? <Failures rolloutId={rolloutId} /> : null}
            {tab === "timeline" ? <Timeline rolloutId={rolloutId} /> : null}
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};

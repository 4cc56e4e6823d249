// What a large fleet shows: figures with their day, groups with the worst first, and changes under way.
import type { Overview, OverviewChange, OverviewGroup } from "@mooring/client";
import { Link, useNavigate } from "@tanstack/react-router";
import { numbers } from "../../ui/count.ts";
import { Bar, Figure, Figures, Spark } from "../../ui/figures.tsx";
import { Panel } from "../../ui/parts.tsx";
import { Shape, Status } from "../../ui/status.tsx";
import { Since } from "../../ui/time.tsx";
import css from "./overview.module.css";
import { text } from "./text.ts";

type Day = NonNullable<Overview["day"]>;

const last = (line: Day["online"] | undefined): number | null => line?.at(-1) ?? null;
/** How many more than an hour ago; null: nobody counted then. */
const risenBy = (now: number, { offline, stepSeconds }: Day): number | null => {
  const before = offline.at(-1 - Math.round(3_600 / stepSeconds));
  return before == null ? null : now - before;
};

interface OfDay {
  readonly overview: Overview;
}
const DeviceFigures = ({ overview: { devices, day } }: OfDay) => {
  const risen = day === null ? null : risenBy(devices.offline, day);
  return (
    <>
      <Figure
        name={
          <>
            <Shape tone="good" /> {text.figures.online}
          </>
        }
        value={numbers.format(devices.online)}
        beside={text.share(devices.online, devices.total)}
        link={{ to: "/devices", search: { status: "online" } }}
      >
        {day === null ? null : <Spark label={text.figures.line(text.figures.online)} values={day.online} tone="good" />}
      </Figure>
      <Figure
        name={
          <>
            <Shape tone={devices.offline > 0 ? "bad" : "idle"} /> {text.figures.offline}
          </>
        }
        value={numbers.format(devices.offline)}
        beside={risen === null || risen <= 0 ? text.share(devices.offline, devices.total) : text.figures.risen(risen)}
        link={{ to: "/devices", search: { status: "offline", sort: "-lastSeen" } }}
      >
        {day === null ? null : <Spark label={text.figures.line(text.figures.offline)} values={day.offline} tone="bad" />}
      </Figure>
    </>
  );
};

const AppsFigure = ({ overview: { apps, day } }: OfDay) =>
  apps === null ? null : (
    <Figure
      name={text.figures.appsInError}
      value={numbers.format(apps.error)}
      beside={text.figures.of(apps.total)}
      link={{ to: "/apps", search: { status: "error" } }}
    >
      {day === null ? null : <Spark label={text.figures.line(text.figures.appsInError)} values={day.appsInError} tone="warn" />}
    </Figure>
  );

/** The open ones, where nobody has counted how many come. */
const CommandsFigure = ({ overview: { commands, day } }: OfDay) => {
  if (commands === null) return null;
  const queued = last(day?.commands);
  const common = { beside: text.figures.overdue(commands.overdue), link: { to: "/commands", search: { show: "open" } } } as const;
  if (day === null || queued === null) return <Figure name={text.figures.openCommands} value={numbers.format(commands.open)} {...common} />;
  return (
    <Figure name={text.figures.commands} value={numbers.format(Math.round((queued * 60) / day.stepSeconds))} {...common}>
      <Spark label={text.figures.line(text.figures.commands)} values={day.commands} />
    </Figure>
  );
};

const BackupsFigure = ({ overview: { day } }: OfDay) => {
  const [fresh, late] = [last(day?.freshBackups) ?? 0, last(day?.lateBackups) ?? 0];
  return day === null || fresh + late === 0 ? null : (
    <Figure name={text.figures.backups} value={text.fine(fresh / (fresh + late))} beside={text.figures.late(late)} link={{ to: "/backups" }}>
      <Spark label={text.figures.line(text.figures.backups)} values={day.freshBackups} />
    </Figure>
  );
};

export const FiguresPanel = ({ overview }: OfDay) => (
  <Figures label={text.figures.title}>
    <DeviceFigures overview={overview} />
    <AppsFigure overview={overview} />
    <CommandsFigure overview={overview} />
    <BackupsFigure overview={overview} />
  </Figures>
);

const partOf = (tag: string): string => tag.slice(tag.indexOf(":") + 1);

const GroupRow = ({ group: { tag, devices, online, offline, provisioning, offlineSince } }: { readonly group: OverviewGroup }) => (
  <tr>
    <th scope="row">
      <Link to="/devices" search={{ tag }} className="cut">
        {partOf(tag)}
      </Link>
    </th>
    <td>{numbers.format(devices)}</td>
    <td className={css["wide"]}>
      <Bar
        parts={[
          { tone: "good", count: online },
          { tone: "bad", count: offline },
          { tone: "idle", count: provisioning },
        ]}
      />
    </td>
    <td>
      {offline === 0 ? (
        "0"
      ) : (
        <Link to="/devices" search={{ tag, status: "offline" }} className={css["offline"]}>
          <Shape tone="bad" /> {numbers.format(offline)}
        </Link>
      )}
    </td>
    <td className={css["wide"]}>
      {offlineSince !== null ? (
        offline === 1 || offlineSince.first === offlineSince.last ? (
          <Since at={offlineSince.last} />
        ) : (
          <>
            <Since at={offlineSince.last} /> {text.groups.to} <Since at={offlineSince.first} />
          </>
        )
      ) : provisioning > 0 ? (
        text.groups.never(provisioning)
      ) : (
        ""
      )}
    </td>
  </tr>
);

export const GroupsPanel = ({ groups: { key, keys, items, total } }: { readonly groups: Overview["groups"] }) => {
  const navigate = useNavigate();
  return (
    <Panel
      title={text.groups.title(key ?? "")}
      beside={
        <span className="row">
          {keys.length < 2 ? null : (
            <label className="row">
              <span className="muted">{text.groups.by}</span>
              <select value={key ?? ""} onChange={({ target }) => void navigate({ to: "/", search: { group: target.value }, replace: true })}>
                {keys.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            </label>
          )}
          <span className="muted">{total > items.length ? text.groups.more(total - items.length) : ""}</span>
        </span>
      }
    >
      <table className={css["groups"]}>
        <thead>
          <tr>
            <th scope="col">{text.groups.name(key ?? "")}</th>
            <th scope="col">{text.groups.devices}</th>
            <th scope="col" className={css["wide"]}>
              {text.groups.state}
            </th>
            <th scope="col">{text.groups.offline}</th>
            <th scope="col" className={css["wide"]}>
              {text.groups.since}
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((group) => (
            <GroupRow key={group.tag} group={group} />
          ))}
        </tbody>
      </table>
    </Panel>
  );
};

const Change = ({ change: { kind, id, name, status, phase, phases, done, failed, total } }: { readonly change: OverviewChange }) => (
  <li>
    <div className={css["deviceHead"]}>
      {kind === "rollout" ? (
        <Link to="/rollouts/$rolloutId" params={{ rolloutId: id }} className={`cut ${css["name"]}`}>
          {name}
        </Link>
      ) : (
        <Link to="/bulk/$operationId" params={{ operationId: id }} className={`cut ${css["name"]}`}>
          {text.changes.operation(name)}
        </Link>
      )}
      <Status status={status} word={text.changes.status(status)} />
    </div>
    <Bar
      parts={[
        { tone: "good", count: done - failed },
        { tone: "bad", count: failed },
      ]}
      whole={Math.max(1, total)}
    />
    <small className="muted">{text.changes.progress({ phase, phases, done, total })}</small>
  </li>
);

export const ChangesPanel = ({ changes }: { readonly changes: readonly OverviewChange[] }) => (
  <Panel title={text.changes.title} beside={<Link to="/rollouts">{text.changes.all}</Link>}>
    <ul className={css["devices"]}>
      {changes.map((change) => (
        <Change key={change.id} change={change} />
      ))}
    </ul>
  </Panel>
);

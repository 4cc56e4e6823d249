// What a policy would do: when it runs next, which apps it takes, and which backups its rules keep.
import type { PolicyPreview } from "@mooring/client";
import { identifierInWords } from "../../../../protocol/kit/identifier-words.ts";
import { Status } from "../../ui/status.tsx";
import { exactTime } from "../../ui/time.tsx";
import { text } from "./text.ts";

const SHOWN = 12;

export const Preview = ({ of: { runs, apps, totalApps, backups } }: { readonly of: PolicyPreview }) => {
  const names = new Map(apps.map(({ appId, name }) => [appId as string, name]));
  return (
    <section className="stack" aria-label={text.previewTitle}>
      <h3>{text.next}</h3>
      {runs.length === 0 ? <p>{text.neverRuns}</p> : null}
      <ul>
        {runs.slice(0, 5).map(({ at, local, note }) => (
          <li key={at}>
            <time dateTime={at} title={exactTime(at)}>
              {local.replace("T", " ")}
            </time>
            {note === null ? null : <span className="muted"> {note}</span>}
          </li>
        ))}
      </ul>
      <p>
        <strong>{text.apps(totalApps)}</strong>
        {apps.length === 0 ? null : `: ${apps.map(({ name }) => name).join(", ")}`}
      </p>
      <h3>{text.fates}</h3>
      {backups.length === 0 ? <p className="muted">{text.noFates}</p> : null}
      <ul>
        {backups.slice(0, SHOWN).map(({ backupId, appId, createdAt, keep, rules }) => (
          <li key={backupId}>
            <Status status={keep ? "completed" : "cancelled"} word={keep ? text.stays : text.goes} /> {names.get(appId) ?? appId}, {exactTime(createdAt)}{" "}
            <span className="muted">{rules.map(identifierInWords).join(", ")}</span>
          </li>
        ))}
      </ul>
    </section>
  );
};

// What needs somebody, the worst first, each line with its next step.
import type { AttentionLine, Overview } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Shape } from "../../ui/status.tsx";
import { noteOf, stepOf, titleOf } from "./attention-words.tsx";
import css from "./overview.module.css";
import { SMALL, useApps } from "./small-fleet.ts";
import { text } from "./text.ts";
import { wayTo } from "./ways.ts";

const FIRST = 5;
const TONES = { bad: "bad", warn: "warn", info: "busy" } as const;
const keyOf = ({ kind, subject, count }: AttentionLine): string => `${kind} ${subject?.id ?? count}`;

const Line = ({ line, cut }: { readonly line: AttentionLine; readonly cut: string }) => (
  <li>
    <Shape tone={TONES[line.tone]} />
    <div>
      <strong>{titleOf(line)}</strong>
      <small>{[noteOf(line), cut].filter(Boolean).join(" ")}</small>
    </div>
    <Link {...wayTo(line.action)} data-kind="button" data-size="small" aria-label={text.step(stepOf(line), line.subject?.name ?? text.kinds[line.kind])}>
      {stepOf(line)}
    </Link>
  </li>
);

/** The names of the apps on each offline device, in a fleet that is small enough to know them. */
const useAppsAway = (overview: Overview): ReadonlyMap<string, readonly string[]> => {
  const may = useMay();
  const { data } = useApps(may("app:read") && overview.devices.total <= SMALL && (overview.apps?.total ?? 0) > 0);
  const names = new Map<string, string[]>();
  for (const { deviceId, name } of data?.items ?? []) names.set(deviceId, [...(names.get(deviceId) ?? []), name]);
  return names;
};

/** The page asks in the same request as for the overview, before it knows which panels it has. */
export const useAttention = () => useQuery(api.attention.list.queryOptions({}));

export const AttentionPanel = ({ overview }: { readonly overview: Overview }) => {
  const [all, setAll] = useState(false);
  const read = useAttention();
  const away = useAppsAway(overview);
  const cutOff = ({ kind, subject }: AttentionLine): string =>
    kind === "devices_offline" && subject?.kind === "device" ? text.unreachable(away.get(subject.id) ?? []) : "";
  const count = read.data?.items.length;
  return (
    <Panel title={text.attention.title} beside={<span className="muted">{count === undefined || count === 0 ? "" : count}</span>}>
      <Loaded read={read} rows={2}>
        {({ items }) =>
          items.length === 0 ? (
            <p className={css["well"]}>
              <Shape tone="good" /> {text.attention.well(overview.devices.total, overview.apps?.total ?? 0)}
            </p>
          ) : (
            <>
              <ul className={css["attention"]}>
                {items.slice(0, all ? undefined : FIRST).map((line) => (
                  <Line key={keyOf(line)} line={line} cut={cutOff(line)} />
                ))}
              </ul>
              {items.length > FIRST && !all ? (
                <div>
                  <button type="button" data-kind="plain" onClick={() => setAll(true)}>
                    {text.attention.all(items.length)}
                  </button>
                </div>
              ) : null}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
};

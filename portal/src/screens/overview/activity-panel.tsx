// What happens now, newest first. It can be held to be read.
import { Link } from "@tanstack/react-router";
import { memo, useCallback, useState } from "react";
import { useEvents } from "../../api/events.ts";
import type { Listener } from "../../api/live.ts";
import { Panel, Skeleton } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { createActivity, type Entry } from "./activity.ts";
import { useEnded } from "./ended.ts";
import css from "./overview.module.css";
import { text } from "./text.ts";

const Row = memo(({ entry: { at, status, detail, device } }: { readonly entry: Entry }) => (
  <li className={css["row"]}>
    <Status status={status} />
    <span className="cut">{detail}</span>
    {device === null ? (
      <span />
    ) : (
      <Link to="/devices/$deviceId" params={{ deviceId: device.deviceId }} className="cut" preload={false}>
        {device.name}
      </Link>
    )}
    <Ago at={at} />
  </li>
));

export const ActivityPanel = ({ readsCommands }: { readonly readsCommands: boolean }) => {
  const [activity] = useState(createActivity);
  const [held, setHeld] = useState<readonly Entry[] | null>(null);
  const [, setVersion] = useState(0);
  const { data, isPending } = useEnded(readsCommands);
  useEvents(
    useCallback<Listener>(
      (events) => {
        activity.receive(events);
        setVersion((version) => version + 1);
      },
      [activity],
    ),
  );
  const entries = held ?? activity.list(data);
  return (
    <Panel
      title={text.activity.title}
      beside={
        <div className="row">
          <span className="muted">{activity.isSampled() ? text.activity.sampled : ""}</span>
          <button type="button" aria-pressed={held !== null} onClick={() => setHeld(held === null ? entries : null)}>
            {held === null ? text.activity.pause : text.activity.resume}
          </button>
        </div>
      }
    >
      {entries.length === 0 ? (
        readsCommands && isPending ? (
          <Skeleton rows={8} />
        ) : (
          <p className="muted">{text.activity.none}</p>
        )
      ) : (
        <div role="log" aria-label={text.activity.title} aria-live="off">
          <ul className={`${css["rows"]} ${css["activity"]}`}>
            {entries.map((entry) => (
              <Row key={entry.key} entry={entry} />
            ))}
          </ul>
        </div>
      )}
    </Panel>
  );
};

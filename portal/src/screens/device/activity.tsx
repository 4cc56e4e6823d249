// What happened on a device lately: its own events and the ends of its commands, newest first.
import type { Command, TenantEvent } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { identifierInWords } from "../../../../protocol/kit/identifier-words.ts";
import { inWords } from "../../../../protocol/kit/words.ts";
import { api } from "../../api/client.ts";
import { isStored, type ReadAgain, useReadAgain } from "../../api/read-again.ts";
import { useMay } from "../../api/session.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Shape, type Tone, toneOf } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./device.module.css";
import { text } from "./text.ts";

const SHOWN = 8;
const READ_AGAIN: ReadAgain = { after: isStored, reads: [api.webhooks.listEvents.pathFilter()], waitMs: () => 1_000 };

interface Entry {
  readonly key: string;
  readonly at: string;
  readonly tone: Tone;
  readonly words: ReactNode;
}

const TONES: Readonly<Record<string, Tone>> = { "device.online": "good", "device.offline": "bad", "device.duplicate_identity": "warn" };
const entryOfEvent = ({ eventId, type, at, data }: TenantEvent): Entry => {
  const { reason, changed } = data as { reason?: string; changed?: readonly string[] }; // as: what these events declare
  const more = type === "device.offline" && reason !== undefined ? inWords(reason) : (changed?.join(", ") ?? "");
  const words = identifierInWords(type.slice(type.indexOf(".") + 1));
  return { key: eventId, at, tone: TONES[type] ?? "idle", words: `${text.happened[type] ?? words}${more === "" ? "" : `: ${more}`}` };
};

type Ended = Pick<Command, "commandId" | "deviceId" | "type" | "status" | "failureCode" | "finishedAt" | "issuedAt">;
const entryOfCommand = ({ commandId, deviceId, type, status, failureCode, finishedAt, issuedAt }: Ended): Entry => ({
  key: commandId,
  at: finishedAt ?? issuedAt,
  tone: toneOf(status),
  words: (
    <>
      <Link to="/devices/$deviceId" params={{ deviceId }} search={{ command: commandId }}>
        {type}
      </Link>{" "}
      {inWords(status)} {failureCode === null ? null : <code>{failureCode}</code>}
    </>
  ),
});

export const Activity = ({ deviceId }: { readonly deviceId: string }) => {
  const may = useMay();
  const events = useQuery({ ...api.webhooks.listEvents.queryOptions({ subjectId: deviceId, pageSize: SHOWN }), enabled: may("event:read") });
  const ended = useQuery({ ...api.commands.list.queryOptions({ deviceId, open: false, pageSize: SHOWN }), enabled: may("command:read") });
  useReadAgain(READ_AGAIN);
  const entries = [...(events.data?.items.map(entryOfEvent) ?? []), ...(ended.data?.items.map(entryOfCommand) ?? [])];
  const isRead = [events, ended].some(({ data }) => data !== undefined);
  const read = {
    data: isRead ? entries.toSorted((a, b) => (a.at < b.at ? 1 : -1)).slice(0, SHOWN) : undefined,
    error: events.error ?? ended.error,
    refetch: () => Promise.all([events, ended].filter(({ error }) => error !== null).map(({ refetch }) => refetch())),
  };
  return (
    <Panel
      title={text.activity}
      beside={
        may("event:read") ? (
          <Link to="/events" search={{ subject: deviceId }}>
            {text.all}
          </Link>
        ) : undefined
      }
    >
      <Loaded read={read} rows={5}>
        {(known) =>
          known.length === 0 ? (
            <p className="muted">{text.nothingYet}</p>
          ) : (
            <ol className={css["feed"]}>
              {known.map(({ key, at, tone, words }) => (
                <li key={key}>
                  <Shape tone={tone} />
                  <span>{words}</span>
                  <Ago at={at} />
                </li>
              ))}
            </ol>
          )
        }
      </Loaded>
    </Panel>
  );
};

// The commands of a device that have not ended, each with what it waits for.
import type { Command } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { waitingFor } from "../../parts/text.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago, Since } from "../../ui/time.tsx";
import css from "./device.module.css";
import { text } from "./text.ts";

type Open = Pick<Command, "commandId" | "deviceId" | "type" | "status" | "issuedAt" | "startedAt" | "progress">;
/** What the others wait for is one click away. */
const SHOWN = 5;

const Waits = ({ command: { commandId, deviceId, progress } }: { readonly command: Open }) => {
  const timeline = useQuery(api.commands.timeline.queryOptions({ commandId, deviceId })).data;
  if (timeline === undefined) return null;
  const { blockedBy, command } = timeline;
  const { ahead, deadlineAt } = blockedBy;
  return (
    <>
      {waitingFor(blockedBy, command)}
      {ahead === undefined ? null : `: ${text.isAhead(ahead.type)}`}
      {progress?.message == null || command.status !== "running" ? null : `: ${progress.message}`}
      {deadlineAt === null || command.status !== "queued" ? null : (
        <>
          , {text.atMost} <Ago at={deadlineAt} />
        </>
      )}
    </>
  );
};

const Row = ({ command }: { readonly command: Open }) => {
  const { commandId, deviceId, type, status, issuedAt, startedAt } = command;
  return (
    <tr>
      <td className={css["main"]}>
        <Link to="/devices/$deviceId" params={{ deviceId }} search={{ command: commandId }}>
          {type}
        </Link>
      </td>
      <td>
        <Status status={status} />
      </td>
      <td className={css["why"]}>
        <Waits command={command} />
      </td>
      <td className={css["number"]}>
        <Since at={startedAt ?? issuedAt} />
      </td>
    </tr>
  );
};

export const OpenCommands = ({ deviceId }: { readonly deviceId: string }) => {
  const read = useQuery(api.commands.list.queryOptions({ deviceId, open: true, pageSize: SHOWN }));
  return (
    <Panel
      title={text.openCommands}
      beside={
        <Link to="/devices/$deviceId" params={{ deviceId }} search={{ tab: "commands" }}>
          {text.allCommands}
        </Link>
      }
    >
      <Loaded read={read}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="muted">{text.noOpenCommands}</p>
          ) : (
            <table className={css["table"]}>
              <thead>
                <tr>
                  <th className={css["main"]}>{text.command}</th>
                  <th>{text.state}</th>
                  <th className={css["why"]}>{text.waitsFor}</th>
                  <th className={css["number"]}>{text.since}</th>
                </tr>
              </thead>
              <tbody>
                {items.map((command) => (
                  <Row key={command.commandId} command={command} />
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
    </Panel>
  );
};

// The device's commands, newest first, and the chosen one beside them.
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { CODE, type CommandRow, LASTED, QUEUED, STATUS, TYPE } from "../../parts/command-columns.tsx";
import { CommandPanel } from "../../parts/command-panel.tsx";
import { text as commandText } from "../../parts/text.ts";
import { List } from "../../ui/list/filtered-list.tsx";
import { Split } from "../../ui/split.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/devices/$deviceId");
const NARROW = [STATUS, TYPE, LASTED, QUEUED];
const WIDE = [STATUS, TYPE, CODE, LASTED, QUEUED];

export const DeviceCommands = ({ onPing }: { readonly onPing: (() => void) | null }) => {
  const { deviceId } = route.useParams();
  const { command } = route.useSearch();
  const navigate = useNavigate();
  const list = useCursorList<CommandRow>(api.commands.list.infiniteQueryOptions({ deviceId, pageSize: PAGE_SIZE }, fromCursor));
  const show = (commandId: string): void => void navigate({ to: "/devices/$deviceId", params: { deviceId }, search: { command: commandId } });
  const close = useCallback(() => void navigate({ to: "/devices/$deviceId", params: { deviceId }, search: { tab: "commands" } }), [navigate, deviceId]);
  return (
    <Split
      onClose={close}
      list={
        <List
          label={commandText.commands}
          columns={command === undefined ? WIDE : NARROW}
          list={list}
          id={({ commandId }) => commandId}
          onOpen={({ commandId }) => show(commandId)}
          opened={command}
          none={text.noCommands}
          action={
            onPing === null ? undefined : (
              <button type="button" onClick={onPing}>
                {text.ping}
              </button>
            )
          }
        />
      }
      detail={
        command === undefined ? null : (
          <CommandPanel
            key={command}
            commandId={command}
            deviceId={deviceId}
            onClose={close}
            link={(ahead, words) => (
              <Link to="/devices/$deviceId" params={{ deviceId }} search={{ command: ahead }}>
                {words}
              </Link>
            )}
          />
        )
      }
    />
  );
};

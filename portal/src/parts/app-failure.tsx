// Why an app or a deployment failed: the stage, the reason and the last lines of its log.
import type { App } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import { useMay } from "../api/session.ts";
import { Panel } from "../ui/parts.tsx";
import { Status } from "../ui/status.tsx";
import { Value } from "../ui/value.tsx";
import { inWords } from "../ui/words.ts";
import { failureTitle, text } from "./app-text.ts";

export const AppFailure = ({ failure }: { readonly failure: App["failure"] }) => {
  const may = useMay();
  if (failure === null) return null;
  const { reason, message, commandId, lines } = failure;
  const title = failureTitle(failure);
  return (
    <Panel title={title} beside={<Status status="failed" word={inWords(reason)} />}>
      <p>{message}</p>
      {lines.length === 0 ? null : <Value label={text.lastLines} value={lines.join("\n")} />}
      {commandId === null || !may("command:read") ? null : (
        <p>
          <Link to="/commands" search={{ command: commandId }}>
            {text.command}
          </Link>
        </p>
      )}
    </Panel>
  );
};

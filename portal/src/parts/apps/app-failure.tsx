// Why an app or a deployment failed: the stage, the reason and the last lines of its log.
import type { App } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useMay } from "../../api/session.ts";
import { Notice } from "../../ui/notice.tsx";
import { Value } from "../../ui/value.tsx";
import { failureTitle, text } from "./app-text.ts";

interface AppFailureProps {
  readonly failure: App["failure"];
  /** The next step. */
  readonly action?: ReactNode;
}
export const AppFailure = ({ failure, action }: AppFailureProps) => {
  const may = useMay();
  if (failure === null) return null;
  const { reason, message, commandId, lines } = failure;
  const title = failureTitle(failure);
  return (
    <Notice
      tone="bad"
      label={title}
      title={title}
      actions={
        <>
          {action}
          {commandId === null || !may("command:read") ? null : (
            <Link to="/commands" search={{ command: commandId }} data-kind="button" data-size="small">
              {text.command}
            </Link>
          )}
        </>
      }
    >
      <p>
        {message} <code>{reason}</code>
      </p>
      {lines.length === 0 ? null : <Value label={text.lastLines} value={lines.join("\n")} />}
    </Notice>
  );
};

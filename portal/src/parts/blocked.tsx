// What a command waits for: since when, until when, and which command is ahead of it.
import type { ReactNode } from "react";
import { Notice } from "../ui/notice.tsx";
import { Ago, Since } from "../ui/time.tsx";
import type { CommandTimeline } from "./command.ts";
import css from "./parts.module.css";
import { text, waitingFor } from "./text.ts";

export type LinkToCommand = (commandId: string, words: ReactNode) => ReactNode;

export const Blocked = ({ timeline, link }: { readonly timeline: CommandTimeline; readonly link: LinkToCommand }) => {
  const { blockedBy, command } = timeline;
  const { kind, since, until, deadlineAt, lane, ahead } = blockedBy;
  const sentence = waitingFor(blockedBy, command);
  if (sentence === null) return null;
  return (
    <Notice
      tone={kind === "agent" && command.status !== "queued" ? "busy" : "warn"}
      label={sentence}
      title={
        <>
          {sentence}
          {since === null ? null : (
            <>
              {" "}
              {text.waitsFor} <Since at={since} />
            </>
          )}
        </>
      }
    >
      {ahead === undefined ? null : (
        <p>
          {text.lane(lane ?? "")} {link(ahead.commandId, text.ahead(ahead.type, ahead.status))}
        </p>
      )}
      {command.progress === null || command.status !== "running" ? null : (
        <p>
          {command.progress.pct === null ? null : <progress className={css["progress"]} max={100} value={command.progress.pct} aria-label="Progress" />}
          {command.progress.message}
        </p>
      )}
      {until === null ? null : (
        <p>
          {text.goesOn} <Ago at={until} />
        </p>
      )}
      {deadlineAt === null ? null : (
        <p>
          {text.deadline} <Ago at={deadlineAt} />
        </p>
      )}
    </Notice>
  );
};

// What the people who run the installation announce, above every screen. Each person dismisses it for themselves; what is critical stays.
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Notice } from "../../ui/notice.tsx";
import { exactTime } from "../../ui/time.tsx";
import css from "./shell.module.css";

const TONES = { critical: "bad", warning: "warn", info: "busy" } as const;

export const Announcements = () => {
  const { announcements } = useMe();
  const dismiss = useMutation(api.announcements.dismiss.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.general.me.pathFilter()) }));
  return announcements.map(({ announcementId, severity, title, body, endsAt }) => (
    <div key={announcementId} className={css["notLive"]}>
      <Notice
        tone={TONES[severity]}
        role={severity === "critical" ? "alert" : "status"}
        title={title}
        actions={
          severity === "critical" ? undefined : (
            <button type="button" disabled={dismiss.isPending} aria-label={`Dismiss: ${title}`} onClick={() => dismiss.mutate({ announcementId })}>
              Dismiss
            </button>
          )
        }
      >
        {body === "" ? null : <span>{body}</span>}
        {endsAt === null ? null : <span>Until {exactTime(endsAt)}</span>}
      </Notice>
    </div>
  ));
};

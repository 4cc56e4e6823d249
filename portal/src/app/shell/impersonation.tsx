// Above every screen while an administrator of the installation acts in a member's name: whose, until when, and the way back.
import { useMutation } from "@tanstack/react-query";
import { api, leaveImpersonation } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Failure } from "../../ui/failure.tsx";
import { Notice } from "../../ui/notice.tsx";
import { exactTime } from "../../ui/time.tsx";
import css from "./shell.module.css";

export const Impersonation = () => {
  const { impersonation, subject, role } = useMe();
  const end = useMutation(api.sessions.logout.mutationOptions({ onSuccess: leaveImpersonation }));
  if (impersonation === null) return null;
  const { adminId, readOnly, expiresAt } = impersonation;
  return (
    <div className={css["notLive"]}>
      <Notice
        tone="warn"
        label="Impersonation"
        title={`You act as ${subject}, with the role ${role}.`}
        actions={
          <button type="button" disabled={end.isPending} onClick={() => end.mutate({})}>
            Stop
          </button>
        }
      >
        <span>
          {readOnly ? "You can change nothing." : `What you change carries your name, ${adminId}, too.`} It ends at {exactTime(expiresAt)}.
        </span>
        {end.error === null ? null : <Failure error={end.error} />}
      </Notice>
    </div>
  );
};

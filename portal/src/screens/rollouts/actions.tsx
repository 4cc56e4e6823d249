// What people do with a rollout: exactly the actions that the gateway lists for it.
import type { Rollout } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { Dialog, Form, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { text } from "./text.ts";

interface Props {
  readonly of: Rollout;
  readonly onClose: () => void;
}
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.rollouts.pathFilter());
const closing = (onClose: () => void) => ({
  onSuccess: async (): Promise<void> => {
    await readAgain();
    onClose();
  },
});
const underWay = ({ counts: { ordered, verifying } }: Rollout): number => ordered + verifying;

/** Asks twice: the second time with the number of devices under way. */
const Abort = ({ of, onClose }: Props) => {
  const { rolloutId, counts } = of;
  const [reason, setReason] = useState<string | null>(null);
  const abort = useMutation(api.rollouts.abort.mutationOptions(closing(onClose)));
  return (
    <Dialog title={text.abortTitle} open onClose={onClose}>
      {reason === null ? (
        <Form submit={text.goOn} back={text.keep} busy={false} error={null} onCancel={onClose} onSubmit={(fields) => setReason(String(fields.get("reason")))}>
          <p>{text.abortFirst(underWay(of), counts.pending)}</p>
          <TextField label={text.reason} name="reason" required maxLength={500} />
        </Form>
      ) : (
        <Form
          danger
          submit={text.abortSure(underWay(of))}
          back={text.keep}
          busy={abort.isPending}
          error={abort.error}
          onCancel={onClose}
          onSubmit={() => abort.mutate({ rolloutId, reason })}
        >
          <p>{text.abortFirst(underWay(of), counts.pending)}</p>
        </Form>
      )}
    </Dialog>
  );
};

const Resume = ({ of: { rolloutId }, onClose }: Props) => {
  const resume = useMutation(api.rollouts.resume.mutationOptions(closing(onClose)));
  return (
    <Dialog title={text.resume} open onClose={onClose}>
      <Form
        submit={text.resume}
        busy={resume.isPending}
        error={resume.error}
        onCancel={onClose}
        onSubmit={(fields) => resume.mutate({ rolloutId, acceptFailures: fields.get("accept") === "on" })}
      >
        <label className="row">
          <input type="checkbox" name="accept" required /> {text.accept}
        </label>
        <p className="muted">{text.acceptHint}</p>
      </Form>
    </Dialog>
  );
};

const Rollback = ({ of: { rolloutId }, onClose }: Props) => {
  const navigate = useNavigate();
  const rollback = useMutation(
    api.rollouts.rollback.mutationOptions({
      onSuccess: async ({ rolloutId: child }) => {
        await readAgain();
        await navigate({ to: "/rollouts/$rolloutId", params: { rolloutId: child } });
        onClose();
      },
    }),
  );
  return (
    <Dialog title={text.rollback} open onClose={onClose}>
      <Form
        danger
        submit={text.rollback}
        back={text.keep}
        busy={rollback.isPending}
        error={rollback.error}
        onCancel={onClose}
        onSubmit={() => rollback.mutate({ rolloutId })}
      >
        <p>{text.rollbackNote}</p>
      </Form>
    </Dialog>
  );
};

const WithReason = ({ of: { rolloutId }, verb, onClose }: Props & { readonly verb: "reject" | "promote" }) => {
  const reject = useMutation(api.rollouts.reject.mutationOptions(closing(onClose)));
  const promote = useMutation(api.rollouts.promote.mutationOptions(closing(onClose)));
  const { mutate, isPending, error } = verb === "reject" ? reject : promote;
  return (
    <Dialog title={text[verb]} open onClose={onClose}>
      <Form
        submit={text[verb]}
        busy={isPending}
        error={error}
        danger={verb === "reject"}
        onCancel={onClose}
        onSubmit={(fields) => mutate({ rolloutId, reason: String(fields.get("reason")) })}
      >
        <TextField label={text.reason} name="reason" required maxLength={500} />
      </Form>
    </Dialog>
  );
};

type Opened = "abort" | "resume" | "rollback" | "reject" | "promote";
const TRIPPED: readonly Rollout["statusReason"][] = ["THRESHOLD_EXCEEDED", "PHASE_FAILED"];

export const RolloutActions = ({ of }: { readonly of: Rollout }) => {
  const { rolloutId, actions, statusReason } = of;
  const [opened, setOpened] = useState<Opened | null>(null);
  const done = { onSuccess: readAgain };
  const start = useMutation(api.rollouts.start.mutationOptions(done));
  const approve = useMutation(api.rollouts.approve.mutationOptions(done));
  const pause = useMutation(api.rollouts.pause.mutationOptions(done));
  const resume = useMutation(api.rollouts.resume.mutationOptions(done));
  const retry = useMutation(api.rollouts.retryFailed.mutationOptions(done));
  const error = start.error ?? approve.error ?? pause.error ?? resume.error ?? retry.error;
  const has = (action: Rollout["actions"][number]): boolean => actions.includes(action);
  const button = (action: Rollout["actions"][number], onClick: () => void, kind?: "primary" | "danger") =>
    has(action) ? (
      <button key={action} type="button" data-kind={kind} onClick={onClick}>
        {text[action]}
      </button>
    ) : null;
  const close = (): void => setOpened(null);
  return (
    <>
      {error === null ? null : <Failure error={error} />}
      {button("abort", () => setOpened("abort"), "danger")}
      {button("reject", () => setOpened("reject"), "danger")}
      {button("rollback", () => setOpened("rollback"))}
      {button("retryFailed", () => retry.mutate({ rolloutId }))}
      {button("promote", () => setOpened("promote"))}
      {button("pause", () => pause.mutate({ rolloutId }))}
      {button("resume", () => (TRIPPED.includes(statusReason) ? setOpened("resume") : resume.mutate({ rolloutId })), "primary")}
      {button("approve", () => approve.mutate({ rolloutId }), "primary")}
      {button("start", () => start.mutate({ rolloutId }), "primary")}
      {opened === "abort" ? <Abort of={of} onClose={close} /> : null}
      {opened === "resume" ? <Resume of={of} onClose={close} /> : null}
      {opened === "rollback" ? <Rollback of={of} onClose={close} /> : null}
      {opened === "reject" || opened === "promote" ? <WithReason of={of} verb={opened} onClose={close} /> : null}
    </>
  );
};

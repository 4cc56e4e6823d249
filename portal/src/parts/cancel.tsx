// Cancels a command after a question: at once, by asking the agent, or by force.
import type { Command } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../api/client.ts";
import { Confirm } from "../ui/dialog.tsx";
import { text } from "./text.ts";

type Way = "ask" | "force";

export const CancelButtons = ({ command }: { readonly command: Pick<Command, "commandId" | "type" | "status"> }) => {
  const { commandId, type, status } = command;
  const [way, setWay] = useState<Way | null>(null);
  const close = (): void => setWay(null);
  const cancel = useMutation({
    ...api.commands.cancel.mutationOptions(),
    onSuccess: () => {
      close();
      return queryClient.invalidateQueries(api.commands.pathFilter());
    },
  });
  const ask = (next: Way): void => {
    cancel.reset();
    setWay(next);
  };
  const explained = way === "force" ? text.cancelForce : status === "queued" ? text.cancelQueued : text.cancelSent;
  return (
    <>
      {status === "canceling" ? null : (
        <button type="button" onClick={() => ask("ask")}>
          {text.cancel}
        </button>
      )}
      {status === "queued" ? null : (
        <button type="button" data-kind="danger" onClick={() => ask("force")}>
          {text.force}
        </button>
      )}
      <Confirm
        title={text.cancelQuestion(type)}
        open={way !== null}
        onClose={close}
        submit={way === "force" ? text.force : text.cancel}
        back={text.back}
        action={cancel}
        onConfirm={() => cancel.mutate({ commandId, force: way === "force" })}
      >
        {explained}
      </Confirm>
    </>
  );
};

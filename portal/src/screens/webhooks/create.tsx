// Creates a webhook, and then shows the secret if the gateway made it.
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { NewWebhookSecret } from "./new-webhook-secret.tsx";
import { text } from "./text.ts";
import { WebhookForm } from "./webhook-form.tsx";

export const CreateWebhook = ({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: (webhookId: string) => void }) => {
  const create = useMutation(
    api.webhooks.create.mutationOptions({
      onSuccess: async ({ webhookId, secret, warnings }) => {
        await queryClient.invalidateQueries(api.webhooks.list.pathFilter());
        if (secret === undefined && warnings.length === 0) onDone(webhookId);
      },
      // A secret is not kept longer than somebody looks at it.
      gcTime: 0,
    }),
  );
  return (
    <Dialog title={create.data === undefined ? text.create : text.created} open onClose={onClose}>
      {create.data === undefined ? (
        <WebhookForm
          submit={text.create}
          action={create}
          onCancel={onClose}
          onSubmit={({ headers = {}, secret, ...wishes }) => create.mutate({ ...wishes, headers, ...(secret === undefined ? {} : { secret }) })}
        />
      ) : (
        <NewWebhookSecret made={create.data} onDone={() => onDone(create.data.webhookId)} />
      )}
    </Dialog>
  );
};

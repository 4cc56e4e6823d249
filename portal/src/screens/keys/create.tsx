// Creates an API key, and then shows its secret.
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { KeyForm } from "./key-form.tsx";
import { NewKeySecret } from "./new-key-secret.tsx";
import { text } from "./text.ts";

export const CreateKey = ({ onClose }: { readonly onClose: () => void }) => {
  const create = useMutation(
    api.apiKeys.create.mutationOptions({
      onSuccess: () => queryClient.invalidateQueries(api.apiKeys.pathFilter()),
      // A secret is not kept longer than somebody looks at it.
      gcTime: 0,
    }),
  );
  return (
    <Dialog title={create.data === undefined ? text.create : text.created} open onClose={onClose}>
      {create.data === undefined ? (
        <KeyForm submit={text.create} action={create} onSubmit={(wishes) => create.mutate(wishes)} onCancel={onClose} />
      ) : (
        <NewKeySecret made={create.data} onDone={onClose} />
      )}
    </Dialog>
  );
};

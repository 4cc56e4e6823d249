// Saves a search of a list under a name, or changes a saved one: its name, who sees it, and whether it stays.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../api/client.ts";
import { useMe } from "../api/session.ts";
import { Confirm, Dialog, Field, Form } from "../ui/dialog.tsx";

interface ShownView {
  readonly viewId: string;
  readonly name: string;
  readonly shared: boolean;
  readonly version: number;
  readonly actor: { readonly id: string };
}

interface ViewDialogProps {
  readonly place: string;
  readonly search: string;
  /** The view that it changes. */
  readonly view: ShownView | undefined;
  readonly others: readonly ShownView[];
  readonly onClose: () => void;
}

export const ViewDialog = ({ place, search, view, others, onClose }: ViewDialogProps) => {
  const { subject } = useMe();
  const [name, setName] = useState(view?.name ?? "");
  const [removes, setRemoves] = useState(false);
  const onSuccess = async (): Promise<void> => {
    await queryClient.invalidateQueries(api.views.pathFilter());
    onClose();
  };
  const create = useMutation(api.views.create.mutationOptions({ onSuccess }));
  const update = useMutation(api.views.update.mutationOptions({ onSuccess }));
  const remove = useMutation(api.views.remove.mutationOptions({ onSuccess }));
  const typed = name.trim();
  const replaced = others.find((each) => each.name === typed && each.viewId !== view?.viewId);
  const target = view ?? replaced;
  /** Nobody but who saved a view takes it from the others. */
  const isOthers = target?.shared === true && target.actor.id !== subject;
  const send = (fields: FormData): void => {
    const shared = isOthers || fields.get("shared") === "on";
    if (target === undefined) create.mutate({ place, name: typed, search, shared });
    else update.mutate({ viewId: target.viewId, version: target.version, name: typed, search, shared });
  };
  const action = target === undefined ? create : update;
  return (
    <Dialog title={view === undefined ? "Save view" : "Change view"} open onClose={onClose}>
      <Form
        submit={view === undefined && replaced !== undefined ? "Replace view" : "Save"}
        busy={action.isPending}
        error={action.error}
        disabled={typed === ""}
        onSubmit={send}
        onCancel={onClose}
        beside={
          view === undefined ? undefined : (
            <button type="button" data-kind="danger" onClick={() => setRemoves(true)}>
              Delete
            </button>
          )
        }
      >
        <Field label="Name" hint={view === undefined && replaced !== undefined ? "A view has this name. It gets the search that you see now." : undefined}>
          {(id, hintId) => (
            <input
              id={id}
              aria-describedby={hintId}
              value={name}
              required
              maxLength={60}
              autoComplete="off"
              onChange={({ target: { value } }) => setName(value)}
            />
          )}
        </Field>
        {isOthers ? (
          <p className="muted">Everybody in the tenant sees it.</p>
        ) : (
          <label className="row">
            <input type="checkbox" name="shared" defaultChecked={target?.shared ?? false} key={target?.viewId} /> Everybody in the tenant sees it
          </label>
        )}
      </Form>
      {view === undefined ? null : (
        <Confirm
          title={`Delete the view ${view.name}?`}
          open={removes}
          onClose={() => setRemoves(false)}
          submit="Delete view"
          action={remove}
          onConfirm={() => remove.mutate({ viewId: view.viewId })}
        >
          {view.shared ? "It is gone for everybody in the tenant. " : ""}What it shows stays as it is.
        </Confirm>
      )}
    </Dialog>
  );
};

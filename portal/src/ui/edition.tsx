// A record in a form: stays as it was read while somebody edits it, and says when it was changed elsewhere meanwhile.
import { Fragment, type ReactNode, useState } from "react";

interface Versioned {
  readonly version: number;
}

export interface Edition<T> {
  readonly shown: T;
  readonly show: (next: T) => void;
  readonly stored: T;
  readonly isOld: boolean;
}

/** Give the form `key={shown.version}`, so that its fields follow. */
export const useEdition = <T extends Versioned>(stored: T): Edition<T> => {
  const [shown, show] = useState(stored);
  return { shown, show, stored, isOld: stored.version > shown.version };
};

export const ChangedElsewhere = <T,>({ of: { isOld, show, stored } }: { readonly of: Edition<T> }) =>
  isOld ? (
    <p role="status">
      This was changed elsewhere meanwhile.{" "}
      <button type="button" data-kind="plain" onClick={() => show(stored)}>
        Show what is stored
      </button>
    </p>
  ) : null;

export interface EditDialogProps<T> {
  readonly stored: T;
  readonly form: (shown: T, onRemove: () => void) => ReactNode;
  /** The question before it is deleted. */
  readonly remove: (onBack: () => void) => ReactNode;
}

/** The inside of a dialog in which somebody changes or deletes a record. */
export const EditDialog = <T extends Versioned>({ stored, form, remove }: EditDialogProps<T>) => {
  const edition = useEdition(stored);
  const [isRemoving, setRemoving] = useState(false);
  return (
    <>
      <ChangedElsewhere of={edition} />
      <Fragment key={edition.shown.version}>{form(edition.shown, () => setRemoving(true))}</Fragment>
      {isRemoving ? remove(() => setRemoving(false)) : null}
    </>
  );
};

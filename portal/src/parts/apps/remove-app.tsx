// The question before an app goes from its device, with or without its data.
import { useState } from "react";
import { Confirm, type ConfirmProps } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { text } from "./app-text.ts";

export interface RemoveAppProps extends Pick<ConfirmProps, "action" | "onClose"> {
  /** What the button does, such as `Remove the app`. */
  readonly word: string;
  readonly what: string;
  readonly name: string;
  readonly onConfirm: (keepVolumes: boolean) => void;
}

export const RemoveApp = ({ word, what, name, onConfirm, ...same }: RemoveAppProps) => {
  const [keeps, setKeeps] = useState(false);
  return (
    <Confirm {...same} title={`${word}?`} open submit={word} back={text.back} typed={name} onConfirm={() => onConfirm(keeps)}>
      <p>{what}</p>
      <Check name="keepVolumes" label={text.keepVolumes} checked={keeps} onChange={({ target }) => setKeeps(target.checked)} />
      <p role="status">{keeps ? "" : text.dataGoes}</p>
    </Confirm>
  );
};

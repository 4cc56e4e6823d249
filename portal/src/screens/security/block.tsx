// Blocks an address, a user, a device or a key.
import type { BlockedEntity } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { Dialog, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { text } from "./text.ts";
import { BLOCKABLE } from "./values.ts";

type BlockedType = BlockedEntity["entityType"];
/** The type as one that can be blocked, undefined if it cannot. */
export const blockable = (type: string): BlockedType | undefined => BLOCKABLE.find((each) => each === type);

export interface BlockProps {
  /** What the form begins with. */
  readonly of?: { readonly entityType: BlockedType | undefined; readonly entityValue: string };
  readonly onClose: () => void;
}

export const Block = ({ of, onClose }: BlockProps) => {
  const block = useMutation(
    api.security.block.mutationOptions({
      onSuccess: async () => {
        await queryClient.invalidateQueries(api.security.pathFilter());
        onClose();
      },
    }),
  );
  const send = (fields: FormData): void => {
    const seconds = String(fields.get("seconds"));
    const reason = String(fields.get("reason")).trim();
    block.mutate({
      entityType: String(fields.get("type")) as BlockedType, // as: the options say so
      entityValue: String(fields.get("value")),
      reason: reason === "" ? null : reason,
      expiresAt: seconds === "" ? null : new Date(gatewayNow() + 1_000 * Number(seconds)).toISOString(),
    });
  };
  return (
    <Dialog title={text.blockTitle} open onClose={onClose}>
      <Form danger submit={text.block} busy={block.isPending} error={block.error} onSubmit={send} onCancel={onClose}>
        <p>{text.blockNote}</p>
        <SelectField label={text.what} name="type" defaultValue={of?.entityType} options={BLOCKABLE.map((each) => [each, text.about[each]] as const)} />
        <TextField label={text.value} name="value" hint={text.valueHints} required maxLength={255} defaultValue={of?.entityValue} />
        <TextField label={text.reason} name="reason" maxLength={500} />
        <SelectField label={text.expires} name="seconds" defaultValue="86400" options={text.expiries} />
      </Form>
    </Dialog>
  );
};

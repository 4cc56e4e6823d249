// The fields of an enrollment token, for one machine or for many.
import { useMe } from "../../api/session.ts";
import { PickTags } from "../../parts/selector-field.tsx";
import { SelectField, TextField } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { text } from "./text.ts";
import type { TokenTerms } from "./token-terms.ts";

export const TokenFields = ({ of, tags, onTags }: { readonly of: TokenTerms; readonly tags: string[]; readonly onTags: (tags: string[]) => void }) => (
  <>
    <TextField label={text.maxUses} name="maxUses" type="number" min={1} max={1_000} defaultValue={of.maxUses ?? ""} hint={text.maxUsesHint} />
    <SelectField label={text.life} name="life" defaultValue={String(of.expiresInSeconds)} options={text.lives} />
    <PickTags hint={text.tags} picked={tags} onChange={onTags} />
    {useMe().features.includes("browserPairing") ? (
      <Check name="approval" label={text.approval} hint={text.approvalHint} defaultChecked={of.approval === "required"} />
    ) : null}
    <Check name="allowRepair" label={text.allowRepair} hint={text.allowRepairHint} defaultChecked={of.allowRepair} />
  </>
);

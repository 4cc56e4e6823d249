// One member: the role, the devices the member is limited to, and the end of the membership.
import type { Member } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay, useMe } from "../../api/session.ts";
import { isComplete, SelectorField, selectorText } from "../../parts/selector-field.tsx";
import { Confirm, Dialog, Form, SelectField } from "../../ui/dialog.tsx";
import { Copyable, Facts, Loaded } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./members.module.css";
import { text } from "./text.ts";

interface Shown {
  readonly member: Member;
  readonly onClose: () => void;
}
interface Asked extends Shown {
  readonly onBack: () => void;
}
const nameOf = ({ email, userId }: Member): string => email ?? userId;

const Change = ({ member, onClose }: Shown) => {
  const { memberId, roleId, version } = member;
  const roles = useQuery(api.roles.list.queryOptions({}));
  const [selector, setSelector] = useState(member.selector);
  const update = useMutation(
    api.roles.updateMember.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(api.roles.pathFilter());
        onClose();
      },
    }),
  );
  return (
    <Loaded read={roles}>
      {({ items }) => (
        <Form
          submit={text.save}
          busy={update.isPending}
          error={update.error}
          disabled={!isComplete(selector)}
          onCancel={onClose}
          onSubmit={(fields) => update.mutate({ memberId, roleId: String(fields.get("role")), selector, version })}
        >
          <SelectField label={text.role} name="role" defaultValue={roleId} options={items.map((role) => [role.roleId, role.name] as const)} />
          <SelectorField label={text.devices} value={selector} onChange={setSelector} />
        </Form>
      )}
    </Loaded>
  );
};

const End = ({ member, onBack, onClose }: Asked) => {
  const { subject } = useMe();
  const leaves = member.userId === subject;
  const remove = useMutation(
    api.roles.removeMember.mutationOptions({
      onSuccess: async () => {
        onClose();
        // Who left stands in another tenant now, or in none.
        if (leaves) location.assign("/");
        else await queryClient.invalidateQueries(api.roles.pathFilter());
      },
    }),
  );
  return (
    <Confirm
      title={leaves ? text.leaveTitle : text.removeTitle(nameOf(member))}
      open
      onClose={onBack}
      submit={leaves ? text.leave : text.remove}
      action={remove}
      onConfirm={() => remove.mutate({ memberId: member.memberId })}
    >
      {leaves ? text.leaveText : text.removeText}
    </Confirm>
  );
};

const Transfer = ({ member, onBack, onClose }: Asked) => {
  const { tenantId } = useMe();
  const transfer = useMutation(
    api.roles.transferOwnership.mutationOptions({
      onSuccess: async () => {
        onClose();
        await Promise.all([queryClient.invalidateQueries(api.roles.pathFilter()), queryClient.invalidateQueries(api.general.me.pathFilter())]);
      },
    }),
  );
  return (
    <Confirm
      title={text.transferTitle}
      open
      onClose={onBack}
      submit={text.transfer}
      typed={nameOf(member)}
      action={transfer}
      onConfirm={() => transfer.mutate({ tenantId: tenantId ?? "", userId: member.userId })}
    >
      {text.transferText(nameOf(member))}
    </Confirm>
  );
};

export const OneMember = ({ memberId, onClose }: { readonly memberId: string; readonly onClose: () => void }) => {
  const may = useMay();
  const { subject } = useMe();
  const [asks, setAsks] = useState<"end" | "transfer" | null>(null);
  const read = useQuery(api.roles.getMember.queryOptions({ memberId }));
  const member = read.data;
  const back = (): void => setAsks(null);
  if (member !== undefined && asks === "end") return <End member={member} onBack={back} onClose={onClose} />;
  if (member !== undefined && asks === "transfer") return <Transfer member={member} onBack={back} onClose={onClose} />;
  const isSelf = member?.userId === subject;
  return (
    <Dialog title={member === undefined ? text.title : nameOf(member)} open onClose={onClose}>
      <Loaded read={read}>
        {(one) => (
          <>
            <Facts
              of={{
                "User id": <Copyable text={one.userId} />,
                Since: <Ago at={one.createdAt} />,
                ...(may("member:write") ? {} : { [text.role]: one.role, [text.devices]: selectorText(one.selector) }),
              }}
            />
            {may("member:write") ? <Change member={one} onClose={onClose} /> : null}
            <div className={`row ${css["apart"]}`}>
              {isSelf || may("member:write") ? (
                <button type="button" data-kind="danger" onClick={() => setAsks("end")}>
                  {isSelf ? text.leave : text.remove}
                </button>
              ) : null}
              {!isSelf && may("tenant:transfer") ? (
                <button type="button" data-kind="danger" onClick={() => setAsks("transfer")}>
                  {text.transfer}
                </button>
              ) : null}
            </div>
          </>
        )}
      </Loaded>
    </Dialog>
  );
};

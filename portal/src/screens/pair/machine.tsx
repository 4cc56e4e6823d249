// The machine behind a code, to compare it with the one in front of the person, and the decision about it.
import type { PairingRequest } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, codeOf } from "../../api/client.ts";
import { PickTags } from "../../parts/selector-field.tsx";
import { Confirm, Form, TextField } from "../../ui/dialog.tsx";
import { type FailureProps, Refusal } from "../../ui/failure.tsx";
import { Copyable, Facts, Skeleton } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago, useNow } from "../../ui/time.tsx";
import css from "./pair.module.css";
import { isCode } from "./pairing-code.ts";
import { text } from "./text.ts";

interface MachineProps {
  readonly code: string;
  readonly onApproved: (deviceId: string) => void;
  readonly onRejected: () => void;
}

const Refused = (failure: FailureProps) => <Refusal sentence={text.failed(codeOf(failure.error))} {...failure} />;

const Comparison = ({ asked: { device, comparison, expiresAt } }: { readonly asked: PairingRequest }) => (
  <>
    {comparison === undefined ? (
      <p>{text.noDigits}</p>
    ) : (
      <div>
        <div className="muted">{text.digits}</div>
        <div className={css["digits"]}>{comparison}</div>
      </div>
    )}
    <Facts
      of={{
        Name: device.name ?? text.unnamed,
        Platform: device.platform,
        Address: <span className="mono">{device.initiatedFrom}</span>,
        Requested: <Ago at={device.initiatedAt} />,
        "Code expires": <Ago at={expiresAt} />,
        Fingerprint: <Copyable text={device.fingerprint} />,
      }}
    />
  </>
);

const Existing = ({ of, checked, onCheck }: { readonly of: Existing; readonly checked: boolean; readonly onCheck: (checked: boolean) => void }) => (
  <div className={css["warning"]}>
    <p>{text.replaces}</p>
    <div className="row">
      <Link to="/devices/$deviceId" params={{ deviceId: of.deviceId }}>
        {of.name ?? of.deviceId}
      </Link>
      <Status status={of.status} />
      <span>
        last seen <Ago at={of.lastSeen} />
      </span>
    </div>
    <label className={css["check"]}>
      <input type="checkbox" checked={checked} onChange={(event) => onCheck(event.target.checked)} />
      {text.replaceCheck}
    </label>
  </div>
);
type Existing = NonNullable<PairingRequest["existingDevice"]>;

const Decision = ({ asked, code, onApproved, onRejected }: MachineProps & { readonly asked: PairingRequest }) => {
  const { device, existingDevice } = asked;
  const [tags, setTags] = useState<string[]>([]);
  const [replaces, setReplaces] = useState(false);
  const [rejects, setRejects] = useState(false);
  const reject = useMutation(api.pairing.reject.mutationOptions({ onSuccess: onRejected }));
  const approve = useMutation(api.pairing.approve.mutationOptions({ onSuccess: ({ deviceId }) => onApproved(deviceId) }));
  const send = (fields: FormData): void => {
    const name = String(fields.get("name")).trim();
    approve.mutate({
      code,
      ...(name === "" ? {} : { name }),
      ...(existingDevice === undefined ? { tags } : { replaces: existingDevice.deviceId }),
    });
  };
  return (
    <>
      {existingDevice === undefined ? null : <Existing of={existingDevice} checked={replaces} onCheck={setReplaces} />}
      {text.failed(codeOf(approve.error)) === undefined ? null : <Refused error={approve.error} />}
      <Form
        submit={text.approve}
        busy={approve.isPending}
        disabled={existingDevice !== undefined && !replaces}
        error={text.failed(codeOf(approve.error)) === undefined ? approve.error : null}
        onSubmit={send}
        beside={
          <button type="button" data-kind="danger" onClick={() => setRejects(true)}>
            {text.reject}
          </button>
        }
      >
        <TextField label={text.name} name="name" maxLength={100} hint={text.nameHint(device.name) || undefined} />
        {existingDevice === undefined ? <PickTags hint="" picked={tags} onChange={setTags} /> : null}
      </Form>
      <Confirm
        title={text.rejectTitle}
        open={rejects}
        onClose={() => setRejects(false)}
        submit={text.reject}
        action={reject}
        onConfirm={() => reject.mutate({ code })}
      >
        {text.rejectText}
      </Confirm>
    </>
  );
};

export const Machine = (props: MachineProps) => {
  const { code } = props;
  const now = useNow();
  // Each look counts against a small limit, so nothing but a person repeats it.
  const asked = useQuery({ ...api.pairing.lookup.queryOptions({ code }), enabled: isCode(code), staleTime: Number.POSITIVE_INFINITY, refetchInterval: false });
  if (!isCode(code)) return null;
  if (asked.error !== null) return <Refused key={asked.errorUpdatedAt} error={asked.error} retry={() => void asked.refetch()} />;
  if (asked.data === undefined) return <Skeleton rows={5} />;
  if (Date.parse(asked.data.expiresAt) <= now) return <p role="alert">{text.expiredHere}</p>;
  return (
    <div className={css["machine"]}>
      <h3>{text.compare}</h3>
      <Comparison asked={asked.data} />
      <Decision {...props} asked={asked.data} />
    </div>
  );
};

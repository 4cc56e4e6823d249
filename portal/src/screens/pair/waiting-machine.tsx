// A machine that waits, to compare it with the one in front of the person, and the decision about it.
import type { PairingRequest } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { api, codeOf, queryClient } from "../../api/client.ts";
import { PickTags } from "../../parts/selector-field.tsx";
import { Pill } from "../../ui/detail-page.tsx";
import { Confirm, Form, TextField } from "../../ui/dialog.tsx";
import { Refusal } from "../../ui/failure.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { Copyable, Facts } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";

export interface WaitingMachineProps {
  readonly of: Omit<PairingRequest, "ageSeconds">;
  /** How the API calls it. */
  readonly named: { readonly code: string } | { readonly requestId: string };
  /** It asked with an enrollment token, which has tags of its own. */
  readonly byToken?: boolean;
  readonly onApproved: (deviceId: string) => void;
  readonly onRejected: () => void;
}

type Known = NonNullable<PairingRequest["existingDevice"]>;
const Existing = ({ of, checked, onCheck }: { readonly of: Known; readonly checked: boolean; readonly onCheck: (checked: boolean) => void }) => (
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
    <Check name="replaces" label={text.replaceCheck} checked={checked} onChange={({ target }) => onCheck(target.checked)} />
  </div>
);

const readAgain = (): void => void queryClient.invalidateQueries(api.pairing.requests.pathFilter());

export const WaitingMachine = ({ of, named, byToken = false, onApproved, onRejected }: WaitingMachineProps) => {
  const { device, comparison, expiresAt, existingDevice } = of;
  const [tags, setTags] = useState<string[]>([]);
  const [replaces, setReplaces] = useState(false);
  const [rejects, setRejects] = useState(false);
  const card = useRef<HTMLElement>(null);
  const isLookedUp = "code" in named;
  // On a phone it is far below the field of the code.
  useEffect(() => {
    if (isLookedUp) card.current?.scrollIntoView({ block: "nearest" });
  }, [isLookedUp]);
  const decided = (then: () => void): void => {
    readAgain();
    then();
  };
  const reject = useMutation(api.pairing.reject.mutationOptions({ onSuccess: () => decided(onRejected) }));
  const approve = useMutation(api.pairing.approve.mutationOptions({ onSuccess: ({ deviceId }) => decided(() => onApproved(deviceId)) }));
  const send = (fields: FormData): void => {
    const name = String(fields.get("name")).trim();
    approve.mutate({
      ...named,
      ...(name === "" ? {} : { name }),
      ...(existingDevice === undefined ? { tags } : { replaces: existingDevice.deviceId }),
    });
  };
  const name = device.name ?? text.unnamed;
  const sentence = text.failed(codeOf(approve.error));
  return (
    <article ref={card} className={css["card"]} aria-label={name}>
      <div className={css["cardHead"]}>
        <h3>{name}</h3>
        <Pill tone="warn">{text.compare}</Pill>
      </div>
      <p className={css["small"]}>
        {[device.platform, text.from(device.initiatedFrom)].filter(Boolean).join(", ")}, <Ago at={device.initiatedAt} />
      </p>
      {comparison === undefined ? (
        <p>{text.noDigits}</p>
      ) : (
        <>
          <p className={css["digits"]}>{comparison}</p>
          <p>{text.digits}</p>
        </>
      )}
      {existingDevice === undefined ? null : <Existing of={existingDevice} checked={replaces} onCheck={setReplaces} />}
      {sentence === undefined ? null : <Refusal sentence={sentence} error={approve.error} />}
      <Form
        submit={text.approve}
        busy={approve.isPending}
        disabled={existingDevice !== undefined && !replaces}
        error={sentence === undefined ? approve.error : null}
        onSubmit={send}
        beside={
          <button type="button" data-kind="danger" onClick={() => setRejects(true)}>
            {text.reject}
          </button>
        }
      >
        <details className={css["small"]}>
          <summary>{text.more}</summary>
          <div className="stack">
            <Facts of={{ "Code expires": <Ago at={expiresAt} />, Fingerprint: <Copyable text={device.fingerprint} /> }} />
            <TextField label={text.name} name="name" maxLength={100} hint={text.nameHint(device.name) || undefined} />
            {existingDevice === undefined ? <PickTags hint={byToken ? text.besideToken : ""} picked={tags} onChange={setTags} /> : null}
          </div>
        </details>
      </Form>
      <Confirm
        title={text.rejectTitle}
        open={rejects}
        onClose={() => setRejects(false)}
        submit={text.reject}
        action={reject}
        onConfirm={() => reject.mutate(named)}
      >
        {text.rejectText}
      </Confirm>
    </article>
  );
};

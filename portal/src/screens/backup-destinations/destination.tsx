// One backup destination: whether devices reach it, what it holds, and the sheet that restores without this product.
import type { BackupDestinationWithActors as BackupDestination } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, codeOf, mooring, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { PickDevices } from "../../parts/selector-field.tsx";
import { bytesText } from "../../ui/bytes.ts";
import { Confirm, Dialog, Form } from "../../ui/dialog.tsx";
import { EditDialog } from "../../ui/edition.tsx";
import { Failure, Refusal } from "../../ui/failure.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Copyable, Facts, Panel } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import { Value } from "../../ui/value.tsx";
import { DestinationForm } from "./form.tsx";
import { text } from "./text.ts";

interface Props {
  readonly of: BackupDestination;
  readonly onClose: () => void;
}
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.backupDestinations.pathFilter());

/** The one device that does it. */
const useOneDevice = () => {
  const [picked, setPicked] = useState<string[]>([]);
  const field = <PickDevices label={text.device} picked={picked} onChange={(ids) => setPicked(ids.slice(-1))} />;
  return { deviceId: picked[0], field };
};

const isLost = ({ lastError }: BackupDestination): boolean => lastError?.reason === "REPOSITORY_MISSING";

const Test = ({ of, onClose }: Props) => {
  const { destinationId } = of;
  const { deviceId, field } = useOneDevice();
  const [initialize, setInitialize] = useState(false);
  const test = useMutation(api.backupDestinations.test.mutationOptions());
  return (
    <Dialog title={text.test} open onClose={onClose}>
      {test.data === undefined ? (
        <Form
          submit={text.test}
          busy={test.isPending}
          error={test.error}
          onCancel={onClose}
          disabled={deviceId === undefined}
          onSubmit={() => (deviceId === undefined ? undefined : test.mutate({ destinationId, deviceId, initialize }))}
        >
          <p>{text.testHint}</p>
          {field}
          {isLost(of) ? (
            <label>
              <input type="checkbox" checked={initialize} onChange={({ target }) => setInitialize(target.checked)} /> {text.beginAnew}
            </label>
          ) : null}
        </Form>
      ) : (
        <div className="stack">
          <p role="status">{text.testing}</p>
          <Link to="/devices/$deviceId" params={{ deviceId: test.data.deviceId }} search={{ command: test.data.commandId }}>
            {text.itsCommand}
          </Link>
        </div>
      )}
    </Dialog>
  );
};

const Recovery = ({ of: { destinationId }, onClose }: Props) => {
  const { deviceId, field } = useOneDevice();
  const read = useMutation({
    mutationFn: (id: string) => mooring.backupDestinations.recovery.query({ destinationId, deviceId: id }),
    // A secret is not kept longer than somebody looks at it.
    gcTime: 0,
  });
  const sheet = read.data;
  const refusal = codeOf(read.error) === "REAUTHENTICATION_REQUIRED" ? text.signInAgain : undefined;
  return (
    <Dialog title={text.recovery} open onClose={onClose}>
      {sheet === undefined ? (
        <Form
          submit={text.recoveryShow}
          busy={read.isPending}
          error={null}
          onCancel={onClose}
          disabled={deviceId === undefined}
          onSubmit={() => (deviceId === undefined ? undefined : read.mutate(deviceId))}
        >
          <p>{text.recoveryWhat}</p>
          {field}
          {read.error === null ? null : <Refusal error={read.error} sentence={refusal} />}
        </Form>
      ) : (
        <div className="stack">
          <Value
            label={text.variables}
            value={Object.entries({ RESTIC_REPOSITORY: sheet.repository, RESTIC_PASSWORD: sheet.password, ...sheet.environment })
              .map(([name, value]) => `export ${name}='${value}'`)
              .join("\n")}
          />
          <Value label={text.commands} value={sheet.commands.join("\n")} />
          <Facts of={{ [text.folder]: sheet.folder, [text.until]: sheet.expiresAt === null ? null : <Ago at={sheet.expiresAt} /> }} />
        </div>
      )}
    </Dialog>
  );
};

const Edit = ({ of, onClose }: Props) => {
  const { destinationId } = of;
  const done = {
    onSuccess: async (): Promise<void> => {
      onClose();
      await readAgain();
    },
  };
  const change = useMutation(api.backupDestinations.change.mutationOptions(done));
  const remove = useMutation(api.backupDestinations.remove.mutationOptions(done));
  return (
    <Dialog title={text.change} open onClose={onClose}>
      <EditDialog
        stored={of}
        form={(shown, onRemove) => (
          <>
            <DestinationForm
              of={shown}
              submit={text.save}
              action={change}
              onCancel={onClose}
              onSubmit={({ kind: _, ...wishes }) => change.mutate({ destinationId, version: shown.version, ...wishes })}
            />
            <button type="button" data-kind="danger" onClick={onRemove}>
              {text.remove}
            </button>
          </>
        )}
        remove={(onBack) => (
          <Confirm title={text.removeTitle} submit={text.remove} open onClose={onBack} action={remove} onConfirm={() => remove.mutate({ destinationId })}>
            {text.removal}
          </Confirm>
        )}
      />
    </Dialog>
  );
};
const DIALOGS = { test: Test, recovery: Recovery, edit: Edit } as const;

export const Destination = ({ of }: { readonly of: BackupDestination }) => {
  const { destinationId, name, kind, settings, usedBytes, isDefault, lastCheckedAt, lastError, version } = of;
  const may = useMay();
  const [opened, setOpened] = useState<keyof typeof DIALOGS | null>(null);
  const prefer = useMutation(api.backupDestinations.change.mutationOptions({ onSuccess: readAgain }));
  const mayWrite = may("backup_destination:write");
  const Shown = opened === null ? null : DIALOGS[opened];
  return (
    <Panel title={name}>
      {lastError === null ? null : (
        <Notice tone="bad" title={isLost(of) ? text.lost : text.notReached}>
          <p>
            {lastError.message} <code>{lastError.reason}</code>
          </p>
        </Notice>
      )}
      <Facts
        of={{
          [text.kind]: text.kindWord(kind),
          ...Object.fromEntries(text.settings[kind].map(([field, label]) => [label, (settings as Readonly<Record<string, string | null>>)[field] ?? null])),
          [text.used]: bytesText(usedBytes),
          [text.checked]: <Ago at={lastCheckedAt} />,
          Id: <Copyable text={destinationId} />,
        }}
      />
      {prefer.error === null ? null : <Failure key={prefer.submittedAt} error={prefer.error} />}
      <div className="row">
        {mayWrite ? (
          <>
            <button type="button" onClick={() => setOpened("test")}>
              {text.test}
            </button>
            <button type="button" onClick={() => setOpened("edit")}>
              {text.change}
            </button>
            {isDefault ? null : (
              <button type="button" disabled={prefer.isPending} onClick={() => prefer.mutate({ destinationId, isDefault: true, version })}>
                {text.makeDefault}
              </button>
            )}
          </>
        ) : null}
        {may("backup:recover") ? (
          <button type="button" onClick={() => setOpened("recovery")}>
            {text.recovery}
          </button>
        ) : null}
      </div>
      {Shown === null ? null : <Shown of={of} onClose={() => setOpened(null)} />}
    </Panel>
  );
};

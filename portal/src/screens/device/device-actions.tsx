// What cannot be taken back, each behind a question: the secret, the connection, the repair window, and the removal of the device.
import type { Device } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { deviceLabel } from "../../ui/device-label.ts";
import { Confirm, type ConfirmProps } from "../../ui/dialog.tsx";
import { Panel } from "../../ui/parts.tsx";
import css from "./device.module.css";
import { text } from "./text.ts";

interface ActionProps {
  readonly name: string;
  readonly what: string;
  readonly danger?: boolean;
  readonly typed?: string;
  readonly action: ConfirmProps["action"] & { readonly isSuccess: boolean; readonly reset: () => void };
  /** Begins it; `done` closes the question. */
  readonly run: (done: () => void) => void;
}

const Action = ({ name, what, danger = false, typed, action, run }: ActionProps) => {
  const [asks, setAsks] = useState(false);
  const close = (): void => setAsks(false);
  return (
    <div className={css["action"]}>
      <p>{what}</p>
      <div className="row">
        <button
          type="button"
          data-kind={danger ? "danger" : undefined}
          onClick={() => {
            action.reset();
            setAsks(true);
          }}
        >
          {name}
        </button>
        <span role="status">{action.isSuccess ? text.done : ""}</span>
      </div>
      <Confirm
        title={`${name}?`}
        open={asks}
        onClose={close}
        submit={name}
        back={text.back}
        action={action}
        {...(typed === undefined ? {} : { typed })}
        onConfirm={() => run(close)}
      >
        {what}
      </Confirm>
    </div>
  );
};

const refresh = (): Promise<void> => queryClient.invalidateQueries(api.devices.pathFilter());

const Secret = ({ device }: { readonly device: Device }) => {
  const { deviceId, repairUntil } = device;
  const may = useMay();
  const rotate = useMutation({ ...api.devices.rotateSecret.mutationOptions(), onSuccess: refresh });
  const revoke = useMutation({ ...api.devices.rotateSecret.mutationOptions(), onSuccess: refresh });
  const disconnect = useMutation({ ...api.devices.disconnect.mutationOptions(), onSuccess: refresh });
  const openRepair = useMutation({ ...api.devices.openRepair.mutationOptions(), onSuccess: refresh });
  const closeRepair = useMutation({ ...api.devices.closeRepair.mutationOptions(), onSuccess: refresh });
  const typed = deviceLabel(device);
  const own = { deviceId };
  return (
    <Panel title={text.secret}>
      {may("device:disconnect") ? (
        <Action name={text.disconnect} what={text.disconnectWhat} action={disconnect} run={(done) => disconnect.mutate(own, { onSuccess: done })} />
      ) : null}
      {may("device:secrets:rotate") ? (
        <>
          <Action name={text.rotate} what={text.rotateWhat} action={rotate} run={(done) => rotate.mutate(own, { onSuccess: done })} />
          <Action
            danger
            name={text.revoke}
            what={text.revokeWhat}
            typed={typed}
            action={revoke}
            run={(done) => revoke.mutate({ ...own, revoke: true }, { onSuccess: done })}
          />
          {repairUntil === undefined ? (
            <Action
              name={text.openRepair}
              what={text.openRepairWhat}
              typed={typed}
              action={openRepair}
              run={(done) => openRepair.mutate(own, { onSuccess: done })}
            />
          ) : (
            <Action name={text.closeRepair} what={text.closeRepairWhat} action={closeRepair} run={(done) => closeRepair.mutate(own, { onSuccess: done })} />
          )}
        </>
      ) : null}
    </Panel>
  );
};

const Removal = ({ device }: { readonly device: Device }) => {
  const { deviceId } = device;
  const navigate = useNavigate();
  const remove = useMutation({
    ...api.devices.remove.mutationOptions(),
    onSuccess: async () => {
      await navigate({ to: "/devices" });
      return refresh();
    },
  });
  return (
    <Panel title={text.danger}>
      <Action danger name={text.remove} what={text.removeWhat} typed={deviceLabel(device)} action={remove} run={() => remove.mutate({ deviceId })} />
    </Panel>
  );
};

export const DeviceActions = ({ device }: { readonly device: Device }) => {
  const may = useMay();
  return (
    <>
      {may("device:disconnect") || may("device:secrets:rotate") ? <Secret device={device} /> : null}
      {may("device:delete") ? <Removal device={device} /> : null}
    </>
  );
};

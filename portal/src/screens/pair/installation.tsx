// What happens after the approval: the machine fetches its identity, reports the steps of its installation and comes online.
import type { Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { deviceLabel } from "../../ui/device-label.ts";
import { Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";

const Steps = ({ device }: { readonly device: Device }) => {
  const progress = useQuery({ ...api.pairing.deviceProgress.queryOptions({ deviceId: device.deviceId }), refetchInterval: false });
  return (
    <Loaded read={progress} rows={2}>
      {({ steps, currentStep, error }) => (
        <>
          <ol className={css["steps"]}>
            <li>
              <span>{text.approved}</span>
              <Status status="completed" />
            </li>
            {Object.entries(steps).map(([step, status]) => (
              <li key={step}>
                <span>{text.steps(step)}</span>
                <Status status={status} />
              </li>
            ))}
            <li>
              <span>{text.online}</span>
              <Status status={device.status === "provisioning" ? "pending" : device.status} />
            </li>
          </ol>
          {currentStep === "failed" ? (
            <p role="alert">
              {text.installFailed} {error}
            </p>
          ) : null}
        </>
      )}
    </Loaded>
  );
};

export const Installation = ({ deviceId }: { readonly deviceId: string }) => {
  const read = useQuery(api.devices.get.queryOptions({ deviceId }));
  return (
    <Loaded read={read}>
      {(device) => {
        const name = deviceLabel(device);
        return (
          <div className="stack">
            <p role="status">{device.status === "online" ? text.isOnline(name) : text.waits(name)}</p>
            <Steps device={device} />
            <div className="row">
              <Link to="/devices/$deviceId" params={{ deviceId }}>
                {text.openDevice}
              </Link>
              <Link to="/pair">{text.another}</Link>
            </div>
          </div>
        );
      }}
    </Loaded>
  );
};

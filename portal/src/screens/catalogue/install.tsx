// Installs an application on a device: a deployment with the configuration that the person typed.
import type { AppTemplate } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { configOf, refusedOf, secretsOf } from "../../parts/apps/app-config.ts";
import { ConfigFields } from "../../parts/config-fields.tsx";
import { PickDevices } from "../../parts/selector-field.tsx";
import { Dialog, Form, TextField } from "../../ui/dialog.tsx";
import { text } from "./text.ts";

/** What to know of the device before the app is sent there. */
const Outlook = ({ deviceId, architectures }: { readonly deviceId: string; readonly architectures: AppTemplate["architectures"] }) => {
  const device = useQuery(api.devices.get.queryOptions({ deviceId })).data;
  if (device === undefined) return null;
  const { arch, connection } = device;
  const isOther = arch !== undefined && !architectures.some((each) => each === arch || ALIASES[arch] === each);
  return (
    <div role="status">
      {connection.connectivity === "none" ? <p>{text.offline}</p> : null}
      {isOther ? <p>{text.otherArchitecture(arch)}</p> : null}
    </div>
  );
};
/** As operating systems call them. */
const ALIASES: Readonly<Record<string, AppTemplate["architectures"][number]>> = { x64: "amd64", x86_64: "amd64", aarch64: "arm64", armv7l: "arm" };

export const Install = ({ of, onClose }: { readonly of: AppTemplate; readonly onClose: () => void }) => {
  const { id, name, configSchema, secrets, architectures } = of;
  const navigate = useNavigate();
  const may = useMay();
  const [deviceId, setDeviceId] = useState<string | null>(null);
  const create = useMutation(
    api.deployments.create.mutationOptions({
      onSuccess: async ({ appId, deploymentId }) => {
        await (appId === null || !may("app:read")
          ? navigate({ to: "/deployments/$deploymentId", params: { deploymentId } })
          : navigate({ to: "/apps/$appId", params: { appId } }));
        await queryClient.invalidateQueries(api.deployments.pathFilter());
      },
      // Secrets are not kept longer than somebody looks at them.
      gcTime: 0,
    }),
  );
  const refused = useMemo(() => refusedOf(create.error, configSchema, secrets), [create.error, configSchema, secrets]);
  const send = (fields: FormData): void => {
    if (deviceId === null) return;
    const called = String(fields.get("name")).trim();
    const given = secretsOf(secrets, fields);
    create.mutate({
      appId: id,
      deviceId,
      configuration: configOf(configSchema, fields),
      ...(called === "" ? {} : { name: called }),
      ...(Object.keys(given).length === 0 ? {} : { secrets: given }),
    });
  };
  return (
    <Dialog title={text.installOn(name)} open onClose={onClose}>
      <Form submit={text.install} busy={create.isPending} error={refused.rest} disabled={deviceId === null} onSubmit={send} onCancel={onClose}>
        <PickDevices label={text.device} picked={deviceId === null ? [] : [deviceId]} onChange={(ids) => setDeviceId(ids.at(-1) ?? null)} />
        {deviceId === null ? null : <Outlook deviceId={deviceId} architectures={architectures} />}
        <TextField label={text.name} name="name" hint={text.nameHint} maxLength={100} />
        <ConfigFields schema={configSchema} secrets={secrets} refused={refused} />
      </Form>
    </Dialog>
  );
};

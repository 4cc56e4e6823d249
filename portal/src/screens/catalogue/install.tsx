// Installs an application on a device: a deployment with the configuration that the person typed.
import type { AppTemplate } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { configOf, refusedOf, secretsOf } from "../../parts/apps/app-config.ts";
import { ConfigFields } from "../../parts/config-fields.tsx";
import { Dialog, Form, TextField } from "../../ui/dialog.tsx";
import { DeviceChoice } from "./device-choice.tsx";
import { text } from "./text.ts";

export const Install = ({ of, onClose }: { readonly of: AppTemplate; readonly onClose: () => void }) => {
  const { id, name, configSchema, secrets, fits } = of;
  const navigate = useNavigate();
  const may = useMay();
  const [deviceId, setDeviceId] = useState<string | null>(fits?.only?.deviceId ?? null);
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
        <DeviceChoice of={of} picked={deviceId} onChange={setDeviceId} />
        <TextField label={text.name} name="name" hint={text.nameHint} maxLength={100} />
        <ConfigFields schema={configSchema} secrets={secrets} refused={refused} />
      </Form>
    </Dialog>
  );
};

// Changes a device: its name, tags and maintenance, and what its secret and connection need.
import type { Device } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Panel } from "../../ui/parts.tsx";
import css from "./device.module.css";
import { DeviceActions } from "./device-actions.tsx";
import { text } from "./text.ts";

/** As `datetime-local` takes it. */
const localTime = (at: string): string => {
  const date = new Date(at);
  return new Date(date.getTime() - 60_000 * date.getTimezoneOffset()).toISOString().slice(0, 16);
};
const listOf = (typed: string): string[] => [...new Set(typed.split(",").map((each) => each.trim()))].filter((each) => each !== "");

const changeOf = (fields: FormData) => {
  const typed = (name: string): string => String(fields.get(name) ?? "").trim();
  const until = typed("until");
  return {
    name: typed("name") || null,
    tags: listOf(typed("tags")),
    maintenance: typed("maintenance") === "on" ? { enabled: true, until: until === "" ? null : new Date(until).toISOString() } : null,
  };
};

const Properties = ({ device }: { readonly device: Device }) => {
  // What the person began with: a change by somebody else must not replace what was typed.
  const [basis, setBasis] = useState(device);
  const update = useMutation({
    ...api.devices.update.mutationOptions(),
    onSuccess: (changed) => {
      setBasis(changed);
      return queryClient.invalidateQueries(api.devices.pathFilter());
    },
  });
  const { deviceId, version, name, tags, maintenance, hostname } = basis;
  const loadAgain = (): void => {
    update.reset();
    setBasis(device);
  };
  return (
    <Panel title={text.properties}>
      {device.version > version ? (
        <p role="status">
          {text.changed}{" "}
          <button type="button" onClick={loadAgain}>
            {text.loadAgain}
          </button>
        </p>
      ) : null}
      <Form
        key={version}
        submit={text.save}
        busy={update.isPending}
        error={update.error}
        onSubmit={(fields) => update.mutate({ deviceId, version, ...changeOf(fields) })}
      >
        <TextField label={text.name} name="name" defaultValue={name} placeholder={hostname ?? ""} hint={text.nameHint} maxLength={100} />
        <TextField label={text.tags} name="tags" defaultValue={tags.join(", ")} hint={text.tagsHint} maxLength={4_000} />
        <SelectField
          label={text.inMaintenance}
          name="maintenance"
          defaultValue={maintenance?.enabled === true ? "on" : "off"}
          options={text.maintenanceOptions}
        />
        <TextField
          label={text.maintenanceUntil}
          name="until"
          type="datetime-local"
          defaultValue={maintenance?.until == null ? "" : localTime(maintenance.until)}
          hint={text.maintenanceUntilHint}
        />
      </Form>
      <p role="status">{update.isSuccess ? text.saved : ""}</p>
    </Panel>
  );
};

export const DeviceSettings = ({ device }: { readonly device: Device }) => {
  const may = useMay();
  return (
    <div className={css["panels"]}>
      {may("device:update") ? <Properties device={device} /> : null}
      <DeviceActions device={device} />
    </div>
  );
};

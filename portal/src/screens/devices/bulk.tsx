// What can be done with several devices at once: a command, tags, a fleet, maintenance. Each goes through the operations for one device or for many.
import type { Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, codeOf, mooring, queryClient } from "../../api/client.ts";
import { pagesFromStart } from "../../api/list-start.ts";
import { useMay } from "../../api/session.ts";
import { type Batch, eachOf, useBulk } from "../../parts/bulk.ts";
import { newKey } from "../../parts/intention.ts";
import { checkPayload, simpleFields } from "../../parts/payload.ts";
import { PayloadFields } from "../../parts/payload-fields.tsx";
import { counted } from "../../ui/count.ts";
import { Dialog, Field, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { BulkBar } from "../../ui/list/bulk-bar.tsx";
import type { Selection } from "../../ui/list/selection.ts";
import { type Change, useBulkJob } from "./bulk-job.ts";

type Query = Parameters<typeof mooring.devices.list.query>[0];
interface DeviceBulkProps {
  readonly selection: Selection;
  readonly total: number;
  readonly query: Query;
}

const BATCH = 200;
interface Some {
  readonly devices: readonly Device[];
  /** Ids of devices that are gone, or no longer in sight. */
  readonly missing: readonly string[];
}
/** The devices that are chosen, some at a time: by their ids, or by the filters of the list. */
async function* chosenOf({ selection: { all, ids }, query }: Pick<DeviceBulkProps, "selection" | "query">): AsyncGenerator<Some> {
  if (!all) {
    const wanted = [...ids];
    for (let at = 0; at < wanted.length; at += BATCH) {
      const asked = wanted.slice(at, at + BATCH);
      const { items } = await mooring.devices.getMany.query({ ids: asked });
      const found = new Set(items.map(idOf));
      yield { devices: items, missing: asked.filter((id) => !found.has(id)) };
    }
    return;
  }
  for await (const items of pagesFromStart((cursor) => mooring.devices.list.query({ ...query, sort: "createdAt", cursor, pageSize: BATCH })))
    yield { devices: items.filter(({ deviceId }) => !ids.has(deviceId)), missing: [] };
}
const idOf = ({ deviceId }: Device): string => deviceId;
/** Does `work` with some devices after another, and tells of those that are gone. */
async function* batchesOf(chosen: AsyncIterable<Some>, work: (devices: readonly Device[]) => Batch["run"]): AsyncGenerator<Batch> {
  for await (const { devices, missing } of chosen) {
    const run: Batch["run"] = async (tell) => {
      if (missing.length > 0) tell(missing.length, new Map(missing.map((id) => [id, "Unknown, or not yours."])));
      if (devices.length > 0) await work(devices)(tell);
    };
    yield { ids: devices.map(idOf), run };
  }
}

type Open = "command" | "tags" | "fleet" | "maintenance";
interface PartProps {
  readonly count: string;
  /** `job`: the same as a bulk job. */
  readonly start: (word: string, work: (device: Device) => Promise<unknown>, job?: Change) => void;
  readonly onClose: () => void;
}

const listOf = (typed: FormDataEntryValue | null): readonly string[] =>
  [
    ...new Set(
      String(typed ?? "")
        .toLowerCase()
        .split(/[\s,]+/),
    ),
  ].filter((tag) => tag !== "");
/** Somebody else may have changed the device since it was read. */
const change = async (device: Device, of: (current: Device) => object): Promise<unknown> => {
  const { deviceId } = device;
  const update = (current: Device) => mooring.devices.update.mutate({ deviceId, version: current.version, ...of(current) });
  try {
    return await update(device);
  } catch (error) {
    if (codeOf(error) !== "VERSION_CONFLICT") throw error;
    return update(await mooring.devices.get.query({ deviceId }));
  }
};
const retag = (device: Device, add: readonly string[], remove: readonly string[]): Promise<unknown> =>
  change(device, ({ tags }) => ({ tags: [...new Set([...tags, ...add])].filter((tag) => !remove.includes(tag)) }));

const TagDialog = ({ count, start, onClose }: PartProps) => {
  const known = useQuery({ ...api.devices.summary.queryOptions({ groupBy: "tag" }), staleTime: 60_000 }).data?.groups ?? [];
  const send = (fields: FormData): void => {
    const [add, remove] = [listOf(fields.get("add")), listOf(fields.get("remove"))];
    start("Tags", (device) => retag(device, add, remove), { operation: "device.tag", params: { add, remove } });
  };
  return (
    <Dialog title={`Tag ${count}`} open onClose={onClose}>
      <Form submit="Change tags" busy={false} error={null} onSubmit={send} onCancel={onClose}>
        <TagField label="Add" name="add" known={known} />
        <TagField label="Remove" name="remove" known={known} />
      </Form>
    </Dialog>
  );
};
const TagField = ({ label, name, known }: { readonly label: string; readonly name: string; readonly known: readonly { readonly value: string | null }[] }) => (
  <Field label={label} hint="Separated by commas. Lower case letters, digits and . : _ -">
    {(id, hintId) => (
      <>
        <input id={id} name={name} aria-describedby={hintId} list={`${id}known`} autoComplete="off" pattern="[A-Za-z0-9_.:,\s\-]*" maxLength={600} />
        <datalist id={`${id}known`}>{known.map(({ value }) => (value === null ? null : <option key={value} value={value} />))}</datalist>
      </>
    )}
  </Field>
);

const MaintenanceDialog = ({ count, start, onClose }: PartProps) => {
  const send = (fields: FormData): void => {
    const until = String(fields.get("until") ?? "");
    const maintenance = fields.get("on") === "on" ? { enabled: true, until: until === "" ? null : new Date(until).toISOString() } : null;
    start("Maintenance", (device) => change(device, () => ({ maintenance })));
  };
  return (
    <Dialog title={`Maintenance of ${count}`} open onClose={onClose}>
      <Form submit="Set maintenance" busy={false} error={null} onSubmit={send} onCancel={onClose}>
        <SelectField
          label="Maintenance"
          name="on"
          options={[
            ["on", "on: no alerts, no work"],
            ["off", "off"],
          ]}
        />
        <TextField label="Until" name="until" type="datetime-local" hint="Empty: until somebody ends it." />
      </Form>
    </Dialog>
  );
};

const MAX_FLEETS = 100;
const FleetDialog = ({ count, start, onClose }: PartProps) => {
  const fleets = useQuery(api.fleets.list.queryOptions({ membership: "static", sort: "name", pageSize: MAX_FLEETS }));
  const options = (fleets.data?.items ?? []).map(({ fleetId, name }) => [fleetId, name] as const);
  const send = (fields: FormData): void => {
    const fleetId = String(fields.get("fleet"));
    start("Fleet", ({ deviceId }) => mooring.fleets.addDevice.mutate({ fleetId, deviceId }), { operation: "device.fleet", params: { add: [fleetId] } });
  };
  return (
    <Dialog title={`Add ${count} to a fleet`} open onClose={onClose}>
      {fleets.error === null ? null : <Failure error={fleets.error} retry={() => void fleets.refetch()} />}
      <Form submit="Add to fleet" busy={fleets.isPending} error={null} disabled={options.length === 0} onSubmit={send} onCancel={onClose}>
        {fleets.isSuccess && options.length === 0 ? (
          <p>There is no fleet whose devices are added one by one.</p>
        ) : (
          <SelectField label="Fleet" name="fleet" options={options} />
        )}
      </Form>
    </Dialog>
  );
};

interface CommandDialogProps extends Omit<PartProps, "start"> {
  readonly order: (type: string, payload: Record<string, unknown>) => void;
}
const CommandDialog = ({ count, order, onClose }: CommandDialogProps) => {
  const may = useMay();
  const types = useQuery({ ...api.commands.types.queryOptions({}), staleTime: 600_000, refetchInterval: false }).data?.items ?? [];
  const offered = types.filter(({ orderedBy, permission }) => orderedBy === "caller" && may(permission));
  const [type, setType] = useState("");
  const [json, setJson] = useState("{}");
  const known = types.find((each) => each.type === type);
  const { payload, issues } = checkPayload(json, known?.payload ?? null);
  return (
    <Dialog title={`Send a command to ${count}`} open onClose={onClose}>
      <Form
        submit="Send"
        busy={false}
        error={null}
        danger={known?.risk === "danger"}
        disabled={payload === null || issues.length > 0 || (known !== undefined && !offered.includes(known))}
        onSubmit={() => payload !== null && order(type, { ...payload })}
        onCancel={onClose}
      >
        <Field label="Type" hint={known?.summary}>
          {(id, hintId) => (
            <>
              <input
                id={id}
                aria-describedby={hintId}
                list={`${id}known`}
                value={type}
                required
                maxLength={64}
                pattern="[A-Za-z][A-Za-z0-9._\-]*"
                autoComplete="off"
                onChange={({ target }) => setType(target.value)}
              />
              <datalist id={`${id}known`}>
                {offered.map(({ type: each, summary }) => (
                  <option key={each} value={each} label={summary} />
                ))}
              </datalist>
            </>
          )}
        </Field>
        {known === undefined || payload === null ? null : <PayloadFields fields={simpleFields(known.payload)} payload={payload} onChange={setJson} />}
        <Field label="Payload (JSON)" fault={issues.join("; ") || undefined}>
          {(id, describedBy) => (
            <textarea
              id={id}
              className="mono"
              aria-describedby={describedBy}
              rows={4}
              spellCheck={false}
              value={json}
              onChange={({ target }) => setJson(target.value)}
            />
          )}
        </Field>
        {known?.risk === "danger" ? (
          <label className="row">
            <input type="checkbox" required /> Yes, send {type} to {count}
          </label>
        ) : null}
      </Form>
    </Dialog>
  );
};

/** One call for all of them; its key makes a repetition harmless. */
const orderFor =
  (type: string, payload: Record<string, unknown>) =>
  (devices: readonly Device[]): Batch["run"] =>
  async (tell) => {
    const { items } = await mooring.commands.queueMany.mutate({ deviceIds: devices.map(idOf), type, payload, idempotencyKey: newKey() });
    tell(devices.length, new Map(items.flatMap(({ deviceId, error }) => (error === null ? [] : [[deviceId, `${error.message} ${error.code}`]]))));
  };

export const DeviceBulk = ({ selection, total, query }: DeviceBulkProps) => {
  const may = useMay();
  const [open, setOpen] = useState<Open | null>(null);
  const { progress, run } = useBulk(selection, total, () => queryClient.invalidateQueries(api.devices.pathFilter()));
  const job = useBulkJob(selection, total, query);
  const close = (): void => setOpen(null);
  const count = counted(selection.count(total), "device");
  const start: PartProps["start"] = (word, work, change) => {
    close();
    if (job.isMany && change !== undefined) return job.start(change);
    void run(
      word,
      batchesOf(chosenOf({ selection, query }), (devices) => eachOf(devices, idOf, work)),
    );
  };
  const order = (type: string, payload: Record<string, unknown>): void => {
    close();
    const confirm = type === "shell" ? { confirm: selection.count(total) } : {};
    if (job.isMany) job.start({ operation: "device.command", params: { type, payload, ...confirm } });
    else void run(type, batchesOf(chosenOf({ selection, query }), orderFor(type, payload)));
  };
  const button = (which: Open, words: string, permission: string): ReactNode =>
    may(permission) ? (
      <button key={which} type="button" onClick={() => setOpen(which)}>
        {words}
      </button>
    ) : null;
  const part = { count, start, onClose: close };
  return (
    <>
      {job.error === null ? null : <Failure error={job.error} />}
      <BulkBar selection={selection} total={total} progress={progress}>
        {button("command", "Command…", "device:command")}
        {button("tags", "Tag…", "device:update")}
        {button("fleet", "Add to fleet…", "fleet:write")}
        {button("maintenance", "Maintenance…", "device:update")}
      </BulkBar>
      {open === "command" ? <CommandDialog count={count} order={order} onClose={close} /> : null}
      {open === "tags" ? <TagDialog {...part} /> : null}
      {open === "fleet" ? <FleetDialog {...part} /> : null}
      {open === "maintenance" ? <MaintenanceDialog {...part} /> : null}
    </>
  );
};

// The form of a mesh route: what it leads to, through which devices, and for which.
import type { MeshRoute } from "@mooring/client";
import { useState } from "react";
import type { mooring } from "../../api/client.ts";
import { PickDevices, PickFleets, PickTags } from "../../parts/selector-field.tsx";
import { Field, Form, TextField } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { text } from "./text.ts";

export type MeshRouteWishes = Parameters<typeof mooring.meshRoutes.create.mutate>[0];

interface MeshRouteFormProps {
  readonly of?: MeshRoute;
  readonly submit: string;
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onSubmit: (wishes: MeshRouteWishes) => void;
  readonly onCancel: () => void;
}

/** Room for one in between. */
const STEP = 10;
const MOST_ROUTERS = 10;
const typed = (fields: FormData, name: string): string => String(fields.get(name) ?? "").trim();
const numberIn = (fields: FormData, name: string): number | null => (typed(fields, name) === "" ? null : Number(fields.get(name)));

const probeIn = (fields: FormData): MeshRouteWishes["probe"] => {
  const [host, port] = [typed(fields, "probeHost"), numberIn(fields, "probePort")];
  return host === "" || port === null ? null : { host, port };
};
/** What this kind leads to. */
const targetIn = (fields: FormData, kind: MeshRoute["kind"]): Partial<MeshRouteWishes> => {
  if (kind === "subnet") return { network: typed(fields, "network"), probe: probeIn(fields) };
  if (kind === "domain") return { domains: typed(fields, "domains").split(/[\s,]+/), probe: probeIn(fields) };
  return { host: typed(fields, "host"), port: Number(fields.get("port")), listenPort: numberIn(fields, "listenPort") };
};

const TargetFields = ({ kind, of }: { readonly kind: MeshRoute["kind"]; readonly of: MeshRoute | undefined }) => {
  const port = { type: "number", min: 1, max: 65_535 } as const;
  if (kind === "host")
    return (
      <>
        <TextField label={text.host} name="host" required maxLength={253} defaultValue={of?.host ?? undefined} hint={text.hostHint} />
        <TextField label={text.port} name="port" required {...port} defaultValue={of?.port ?? undefined} />
        <TextField label={text.listen} name="listenPort" {...port} defaultValue={of?.listenPort ?? undefined} hint={text.listenHint} />
      </>
    );
  return (
    <>
      {kind === "subnet" ? (
        <TextField label={text.network} name="network" required maxLength={64} defaultValue={of?.network ?? undefined} hint={text.networkHint} />
      ) : (
        <Field label={text.domains} hint={text.domainsHint}>
          {(id, hintId) => (
            <textarea
              id={id}
              aria-describedby={hintId}
              name="domains"
              rows={2}
              required
              maxLength={8_000}
              defaultValue={of?.domains.join("\n")}
              spellCheck={false}
            />
          )}
        </Field>
      )}
      <TextField label={text.probeHost} name="probeHost" maxLength={253} defaultValue={of?.probe?.host} hint={text.probeHint} />
      <TextField label={text.probePort} name="probePort" {...port} defaultValue={of?.probe?.port} />
    </>
  );
};

export const MeshRouteForm = ({ of, submit, action, onSubmit, onCancel }: MeshRouteFormProps) => {
  const [kind, setKind] = useState<MeshRoute["kind"]>(of?.kind ?? "subnet");
  const [routers, setRouters] = useState<readonly string[]>(of?.routers.toSorted((a, b) => a.metric - b.metric).map(({ deviceId }) => deviceId) ?? []);
  const [consumers, setConsumers] = useState<MeshRoute["consumers"]>(of?.consumers ?? { deviceIds: [], tags: [], fleetIds: [], all: false });
  const hasConsumers = consumers.all || consumers.deviceIds.length + consumers.tags.length + consumers.fleetIds.length > 0;
  const metricOf = new Map(of?.routers.map(({ deviceId, metric }) => [deviceId as string, metric]));
  /** Who changes nothing about the routers keeps their order numbers, and so the approval. */
  const keepsRouters = routers.length === metricOf.size && routers.every((id) => metricOf.has(id));
  const send = (fields: FormData): void =>
    onSubmit({
      name: typed(fields, "name"),
      kind,
      ...targetIn(fields, kind),
      routers: routers.map((deviceId, at) => ({ deviceId, metric: (keepsRouters ? metricOf.get(deviceId) : undefined) ?? STEP * (at + 1) })),
      consumers: consumers.all ? { all: true } : { ...consumers, all: false },
    });
  return (
    <Form
      submit={submit}
      busy={action.isPending}
      error={action.error}
      onSubmit={send}
      onCancel={onCancel}
      disabled={routers.length === 0 || routers.length > MOST_ROUTERS || !hasConsumers}
    >
      <TextField label={text.name} name="name" required maxLength={100} defaultValue={of?.name} />
      {of === undefined ? (
        <Field label={text.kind}>
          {(id) => (
            <select id={id} value={kind} onChange={({ target }) => setKind(text.kinds.find(([each]) => each === target.value)?.[0] ?? "subnet")}>
              {text.kinds.map(([value, word]) => (
                <option key={value} value={value}>
                  {word}
                </option>
              ))}
            </select>
          )}
        </Field>
      ) : null}
      <TargetFields kind={kind} of={of} />
      <fieldset className="stack">
        <legend>{text.routers}</legend>
        <p className="muted">{text.routersHint}</p>
        <PickDevices label={text.routers} picked={routers} onChange={setRouters} />
      </fieldset>
      <fieldset className="stack">
        <legend>{text.consumers}</legend>
        <p className="muted">{text.consumersHint}</p>
        <Check name="all" label={text.all} checked={consumers.all} onChange={({ target }) => setConsumers({ ...consumers, all: target.checked })} />
        {consumers.all ? null : (
          <>
            <PickDevices
              label={text.consumers}
              picked={consumers.deviceIds}
              onChange={(ids) => setConsumers({ ...consumers, deviceIds: ids as MeshRoute["consumers"]["deviceIds"] })} // as: the field offers ids of devices
            />
            <PickTags picked={consumers.tags} onChange={(tags) => setConsumers({ ...consumers, tags })} />
            <PickFleets
              picked={consumers.fleetIds}
              onChange={(ids) => setConsumers({ ...consumers, fleetIds: ids as MeshRoute["consumers"]["fleetIds"] })} // as: the field offers ids of fleets
            />
          </>
        )}
      </fieldset>
    </Form>
  );
};

// "Go to": places, devices by a part of their name, and any pasted id.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useDeferredValue, useState } from "react";
import { api } from "../api/client.ts";
import { deviceLabel } from "../ui/device-label.ts";
import { Dialog } from "../ui/dialog.tsx";
import { useId } from "../ui/use-id.ts";
import css from "./palette.module.css";
import { nameOf } from "./place-name.ts";
import type { Place } from "./places.ts";

interface Target {
  readonly key: string;
  readonly word: string;
  readonly kind: string;
  readonly go: () => Promise<void>;
}

const MAX_DEVICES = 8;

const useTargets = (typed: string, places: readonly Place[]): readonly Target[] => {
  const navigate = useNavigate();
  const q = useDeferredValue(typed.trim());
  const found = useQuery({
    ...api.devices.list.queryOptions({ q: q || "-", pageSize: MAX_DEVICES, sort: "name" }),
    enabled: q.length > 1 && !/^(dev|cmd|app|dep|wh|evt|alr|sal)_/.test(q),
  });
  const byId = /^dev_\w+$/.test(q) ? [{ key: q, word: q, kind: "device", go: () => navigate({ to: "/devices/$deviceId", params: { deviceId: q } }) }] : [];
  const command = /^cmd_\w+$/.test(q) ? [{ key: q, word: q, kind: "command", go: () => navigate({ to: "/commands", search: { command: q } }) }] : [];
  const app = /^app_\w+$/.test(q) ? [{ key: q, word: q, kind: "app", go: () => navigate({ to: "/apps/$appId", params: { appId: q } }) }] : [];
  const deployment = /^dep_\w+$/.test(q)
    ? [{ key: q, word: q, kind: "deployment", go: () => navigate({ to: "/deployments/$deploymentId", params: { deploymentId: q } }) }]
    : [];
  const webhook = /^wh_\w+$/.test(q)
    ? [{ key: q, word: q, kind: "webhook", go: () => navigate({ to: "/webhooks/$webhookId", params: { webhookId: q } }) }]
    : [];
  const event = /^evt_\w+$/.test(q) ? [{ key: q, word: q, kind: "event", go: () => navigate({ to: "/events", search: { event: q } }) }] : [];
  const trace = /^[0-9a-f]{32}$/.test(q) ? [{ key: q, word: q, kind: "trace", go: () => navigate({ to: "/traces/$traceId", params: { traceId: q } }) }] : [];
  const alert = /^alr_\w+$/.test(q) ? [{ key: q, word: q, kind: "alert", go: () => navigate({ to: "/alerts", search: { open: q } }) }] : [];
  const security = /^sal_\w+$/.test(q) ? [{ key: q, word: q, kind: "security alert", go: () => navigate({ to: "/security", search: { open: q } }) }] : [];
  const named = places
    .filter((place) => nameOf(place).toLowerCase().includes(q.toLowerCase()))
    .map((place) => ({ key: place.to, word: nameOf(place), kind: "place", go: () => navigate({ to: place.to }) }));
  const devices = (q.length > 1 ? (found.data?.items ?? []) : []).map((device) => ({
    key: device.deviceId,
    word: deviceLabel(device),
    kind: "device",
    go: () => navigate({ to: "/devices/$deviceId", params: { deviceId: device.deviceId } }),
  }));
  return [...byId, ...command, ...app, ...deployment, ...webhook, ...event, ...trace, ...alert, ...security, ...named, ...devices];
};

export const Palette = ({ places, onClose }: { readonly places: readonly Place[]; readonly onClose: () => void }) => {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const targets = useTargets(typed, places);
  const id = useId();
  const current = Math.min(at, Math.max(0, targets.length - 1));
  const go = (target: Target | undefined): void => {
    if (target === undefined) return;
    onClose();
    void target.go();
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Enter") go(targets[current]);
    if (step === 0 || targets.length === 0) return;
    event.preventDefault();
    setAt((current + step + targets.length) % targets.length);
  };
  return (
    <Dialog title="Go to" open onClose={onClose}>
      <input
        role="combobox"
        aria-label="Place, device or id"
        aria-expanded={targets.length > 0}
        aria-controls={id}
        aria-activedescendant={targets.length > 0 ? `${id}${current}` : undefined}
        autoComplete="off"
        placeholder="Place, device name or id"
        value={typed}
        maxLength={100}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={press}
      />
      <div id={id} role="listbox" aria-label="Targets" className={css["targets"]}>
        {targets.map((target, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
          <div
            key={target.key}
            id={`${id}${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            className={css["target"]}
            onClick={() => go(target)}
          >
            <span className="cut">{target.word}</span>
            <span className="muted">{target.kind}</span>
          </div>
        ))}
      </div>
      <p role="status" className="muted">
        {targets.length === 0 ? "No place or device matches." : ""}
      </p>
    </Dialog>
  );
};

// Creates the feature of alerts from what other features know of devices and fleets.
import { type AlertsDeps, createAlerts } from "../features/alerts/index.ts";
import type { FeatureKit } from "../features/kit.ts";
import type { FeaturesDeps } from "./deps.ts";
import { alertSettings } from "./settings.ts";

interface Others {
  readonly kit: FeatureKit;
  readonly devices: { readonly known: AlertsDeps["knownDevices"] };
  readonly fleets: { readonly holdForLimit: AlertsDeps["holdFleets"] };
  readonly onError: (what: string, error: unknown) => void;
}

export const createAlerting = ({ config, publicUrl }: FeaturesDeps, { kit, devices, fleets, onError }: Others) =>
  createAlerts({
    ...kit,
    ...alertSettings(config, publicUrl),
    knownDevices: devices.known,
    holdFleets: fleets.holdForLimit,
    onError: (error) => onError("alert notification", error),
  });

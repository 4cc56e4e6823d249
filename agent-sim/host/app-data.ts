// What backups need of a host: the folders of an app's data, time in which nothing changes them, and a swap that a crash cannot leave half done.
import type { AppBackup, DesiredApp } from "../../protocol/records/apps/app-spec.ts";
import type { Consistency } from "../../protocol/records/backups/backup.ts";

/** A folder of an app's data. */
export interface VolumePlace {
  readonly name: string;
  readonly path: string;
  /** Where the former data waits during a swap: on the same file system. */
  readonly before: string;
  /** Where restored data waits for a swap: on the same file system. */
  readonly incoming: string;
}

export interface DataPlaces {
  /** What the device has; null: the app is not on it. */
  readonly app: DesiredApp | null;
  /** The app's own folder. */
  readonly folder: string;
  readonly volumes: readonly VolumePlace[];
  /** Where restored data waits for its swap. */
  readonly incoming: string;
  /** Data of the app that is in none of the volumes, in words. */
  readonly outside: readonly string[];
}

export interface RestOrder {
  readonly backupId: string;
  /** `template`: as the app's template says. Otherwise this mode, without hooks. */
  readonly consistency: "template" | AppBackup["mode"];
}
export interface Rested<T> {
  readonly result: T;
  readonly consistency: Consistency;
  readonly downtimeSeconds: number;
  /** What went wrong after the data had been read. */
  readonly warnings: readonly string[];
}

/** `to` gets what is at `from`. */
export interface SwapItem {
  readonly from: string;
  readonly to: string;
  readonly before: string;
}
export interface Swap {
  readonly restoreId: string;
  readonly app: DesiredApp;
  /** Called when the app has stopped. */
  readonly items: () => readonly SwapItem[];
  readonly files: number;
  readonly bytes: number;
}

export interface RestoredData {
  readonly restoreId: string;
  readonly files: number;
  readonly bytes: number;
}

export interface HostVolume {
  readonly name: string;
  readonly driver: string;
  readonly path: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly appId: string | null;
  readonly inUse: boolean;
}

export interface HostData {
  /** The places of an app's data, for what is desired of it, whether it is on the device or not. */
  places(app: DesiredApp): Promise<DataPlaces>;
  /** Reads the data while nothing changes it. Afterwards the app runs as before, whatever happened, and after a crash too. */
  atRest<T>(app: DesiredApp, rest: RestOrder, read: (places: DataPlaces) => Promise<T>): Promise<Rested<T>>;
  /** Stops the app, exchanges the data and brings the app to what is desired. Rejects with HostFailure if it is not healthy then; the former data is back. */
  swap(swap: Swap): Promise<void>;
  /** The last swap that was completed. */
  restored(appId: string): RestoredData | null;
  /** The volumes on this machine, those of no app included. */
  volumes(): Promise<readonly HostVolume[]>;
  removeVolume(name: string): Promise<boolean>;
  /** The agent ends. */
  readonly closing: AbortSignal;
}

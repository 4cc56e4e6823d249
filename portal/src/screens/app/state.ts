// How an app is in a word, where its page is, and whether its device is there.
import type { AppDetails } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { inWords } from "../../../../protocol/kit/words.ts";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { shownStatus } from "../../parts/apps/app-status.tsx";
import { type Tone, toneOf } from "../../ui/status.tsx";
import { text } from "./text.ts";

/** The health of what runs, else the state. */
export const shownState = ({ status, drift, reported }: AppDetails): { readonly tone: Tone; readonly word: string } => {
  if (drift && status !== "error") return { tone: "warn", word: text.drift };
  const health = reported?.health ?? "unknown";
  if (status === "running" && health !== "unknown") return { tone: toneOf(health), word: inWords(health) };
  return { tone: toneOf(shownStatus(status).status), word: inWords(status) };
};

export const isPage = (url: string): boolean => /^https?:\/\//.test(url);
/** The address that a browser opens first. */
export const pageOf = ({ addresses }: Pick<AppDetails, "addresses">): string | undefined => addresses.find(({ url }) => isPage(url))?.url;

export const useDevice = ({ deviceId }: AppDetails) => {
  const may = useMay();
  const read = useQuery({ ...api.devices.get.queryOptions({ deviceId }), enabled: may("device:read") });
  const device = read.data;
  return { read, device, isAway: device?.connection.connectivity === "none" };
};

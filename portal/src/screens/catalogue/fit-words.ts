// On which devices an application can run, and why it cannot on others, in words.
import type { AppTemplate } from "@mooring/client";
import { type AppLack, lacksOf, type ReportedMachine } from "../../../../protocol/kit/app-fit.ts";
import { bytesText } from "../../ui/bytes.ts";
import { counted, numbers } from "../../ui/count.ts";

type Needs = Pick<AppTemplate, "kind" | "architectures" | "requirements">;
const MEGABYTE = 1_048_576;

export const memoryText = ({ requirements }: Needs): string => bytesText(requirements.memoryMB * MEGABYTE);
export const diskText = ({ requirements: { diskGB } }: Needs): string => (diskGB < 1 ? `${diskGB * 1_000} MB` : `${numbers.format(diskGB)} GB`);
/** What it needs of a device. */
const needsText = (of: Needs): Readonly<Record<AppLack, string>> => ({
  architecture: of.architectures.join(" or "),
  runtime: of.kind === "compose" ? "Docker" : "an agent that runs programs",
  memory: `${memoryText(of)} of memory`,
  disk: `${diskText(of)} of disk`,
});

/** Such as `runs on 2 of your 3`; nothing for whoever has no devices, or may not read them. */
export const fitText = ({ fits }: Pick<AppTemplate, "fits">): string | null => {
  if (fits === null || fits.total === 0) return null;
  const { devices, total } = fits;
  if (total === 1) return devices === 1 ? "runs on your device" : "does not run on your device";
  if (devices === total) return `runs on all ${numbers.format(total)} of yours`;
  return `runs on ${devices === 0 ? "none" : numbers.format(devices)} of your ${numbers.format(total)}`;
};

/** What every device of the caller lacks, such as `needs Docker`. */
export const lackOfAll = (of: AppTemplate): string | null => {
  if (of.fits === null || of.fits.devices > 0) return null;
  const { lacking, total } = of.fits;
  const lacks = (Object.keys(lacking) as AppLack[]).filter((lack) => lacking[lack] === total && total > 0);
  return lacks.length === 0 ? null : `needs ${lacks.map((lack) => needsText(of)[lack]).join(" and ")}`;
};

/** Such as `2 devices have less than 6 GB of memory`, for each thing that some lack. */
export const lackingTexts = (of: AppTemplate): readonly string[] => {
  const what: Readonly<Record<AppLack, string>> = {
    architecture: `another architecture than ${needsText(of).architecture}`,
    runtime: of.kind === "compose" ? "no agent that runs containers" : "an agent that runs containers only",
    memory: `less than ${needsText(of).memory}`,
    disk: `less than ${needsText(of).disk}`,
  };
  return Object.entries(of.fits?.lacking ?? {}).flatMap(([lack, devices]) =>
    devices === 0 ? [] : [`${counted(devices, "device")} ${devices === 1 ? "has" : "have"} ${what[lack as AppLack]}`],
  );
};

/** Why this device cannot run it; empty if nothing that it has reported says so. */
export const reasonsOf = (of: Needs, device: ReportedMachine): string => {
  const needs = needsText(of);
  const { arch, hardware } = device;
  const has: Readonly<Record<AppLack, string>> = {
    architecture: `it is ${arch}`,
    runtime: of.kind === "compose" ? "its agent runs no containers" : "its agent runs containers only",
    memory: `it has ${bytesText(hardware?.memoryBytes ?? 0)}`,
    disk: `it has ${bytesText(hardware?.diskBytes ?? 0)}`,
  };
  return lacksOf(of, device)
    .map((lack) => `needs ${needs[lack]}; ${has[lack]}`)
    .join(". ");
};

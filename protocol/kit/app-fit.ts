// Whether a machine can run an application, as far as it has reported what it is and has. The gateway counts devices by this rule, and the console
// says why a device cannot. Nothing refuses an installation by it: an agent may know better than its last report.

export const APP_KINDS = ["process", "compose"] as const;
export const APP_ARCHITECTURES = ["amd64", "arm64", "arm"] as const;
export const APP_LACKS = ["architecture", "runtime", "memory", "disk"] as const;
/** What a machine lacks for an application. */
export type AppLack = (typeof APP_LACKS)[number];

export interface AppNeeds {
  readonly kind: (typeof APP_KINDS)[number];
  readonly architectures: readonly string[];
  readonly requirements: { readonly memoryMB: number; readonly diskGB: number };
}

/** What a machine has not reported counts as enough. */
export interface ReportedMachine {
  readonly arch?: string | null | undefined;
  readonly runtimes?: readonly string[] | null | undefined;
  readonly hardware?: { readonly memoryBytes?: number | null | undefined; readonly diskBytes?: number | null | undefined } | null | undefined;
}

/** As Node.js and operating systems call them. */
export const ARCHITECTURE_OF: ReadonlyMap<string, string> = new Map<string, (typeof APP_ARCHITECTURES)[number]>([
  ...APP_ARCHITECTURES.map((name) => [name, name] as const),
  ["x64", "amd64"],
  ["x86_64", "amd64"],
  ["aarch64", "arm64"],
  ["armv7l", "arm"],
]);

/** A machine reports less than it was sold with: its firmware and its file system keep a part. */
const REPORTED_SHARE = 0.9;
export const leastBytes = ({ memoryMB, diskGB }: AppNeeds["requirements"]): { readonly memory: number; readonly disk: number } => ({
  memory: Math.round(memoryMB * 1e6 * REPORTED_SHARE),
  disk: Math.round(diskGB * 1e9 * REPORTED_SHARE),
});

export const lacksOf = ({ kind, architectures, requirements }: AppNeeds, { arch, runtimes, hardware }: ReportedMachine): readonly AppLack[] => {
  const least = leastBytes(requirements);
  const lacks: Readonly<Record<AppLack, boolean>> = {
    architecture: arch != null && !architectures.includes(ARCHITECTURE_OF.get(arch) ?? arch),
    runtime: runtimes != null && !runtimes.includes(kind),
    memory: (hardware?.memoryBytes ?? least.memory) < least.memory,
    disk: (hardware?.diskBytes ?? least.disk) < least.disk,
  };
  return APP_LACKS.filter((lack) => lacks[lack]);
};

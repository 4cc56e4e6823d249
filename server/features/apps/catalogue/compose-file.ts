// The part of Compose that a template may use. Whatever is not listed here is refused, so no template reaches out of its containers: nothing
// privileged, no network or path of the host, no socket of Docker, no image that is built on the device.
import { parse } from "yaml";
import { z } from "zod";
import { AppSlug } from "../../../../protocol/index.ts";

const Duration = z.string().regex(/^\d+(?:s|m)$/, "must be a duration such as 30s");
const Port = z.string().regex(/^\$\{[A-Z_][A-Z0-9_]*\}:\d{1,5}(?:\/(?:tcp|udp))?$/, "must be a variable in braces and a number, perhaps with /tcp or /udp");
const Mount = z
  .string()
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*:\/[\w./-]+(?::ro)?$/, "must mount a named volume as name:/path/in/the/container")
  .refine((mount) => !mount.split(/[:/]/).includes(".."), "must not contain ..")
  .refine((mount) => !mount.includes("docker.sock"), "must not mount the socket of Docker");

const Service = z.strictObject({
  image: z.string(),
  restart: z.literal("unless-stopped"),
  command: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  ports: z.array(Port).default([]),
  volumes: z.array(Mount).default([]),
  depends_on: z.record(AppSlug, z.strictObject({ condition: z.enum(["service_started", "service_healthy"]) })).default({}),
  healthcheck: z
    .strictObject({
      test: z.tuple([z.literal("CMD")], z.string()),
      interval: Duration,
      timeout: Duration,
      retries: z.int().min(1).max(50),
    })
    .optional(),
  user: z
    .string()
    .regex(/^\d+(?::\d+)?$/)
    .optional(),
  shm_size: z
    .string()
    .regex(/^\d+[mg]b$/)
    .optional(),
});

const ComposeFile = z.strictObject({
  services: z.record(AppSlug, Service).refine((services) => Object.keys(services).length > 0, "must have a service"),
  volumes: z.record(AppSlug, z.strictObject({})).default({}),
});
export type ComposeFile = z.output<typeof ComposeFile>;

export const parseCompose = (text: string): ComposeFile => ComposeFile.parse(parse(text, { maxAliasCount: 0 }));

const VARIABLE = /\$\{([A-Z_][A-Z0-9_]*)\}/g;

/** The variables that the text takes from the environment of the app. */
export const variablesOf = (text: string): ReadonlySet<string> => new Set([...text.replaceAll("$$", "").matchAll(VARIABLE)].map(([, name = ""]) => name));

/** A `$` that is neither `${NAME}` nor escaped: Compose would take it for a form with a default, or for a variable of the host. */
export const hasOtherVariables = (text: string): boolean => text.replaceAll("$$", "").replaceAll(VARIABLE, "").includes("$");

// How to reach a channel: what each kind needs, what of it people see, and how it is sealed.

import { ChannelConfig, type ChannelType } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { SealedContext } from "../../platform/keys/sealed.ts";
import type { FeatureKit } from "../kit.ts";
import type { SealedChannel } from "./store/channels.ts";

export const configContext = (channelId: string): SealedContext => `alert-channel|${channelId}`;

type Box = Pick<FeatureKit["secretBox"], "seal" | "open">;
export const sealConfig = (box: Box, channelId: string, config: ChannelConfig): Uint8Array<ArrayBuffer> =>
  box.seal(JSON.stringify(config), configContext(channelId));

/** Null if it was sealed with another master key. */
export const openConfig = (box: Box, { channelId, config }: Pick<SealedChannel, "channelId" | "config">): ChannelConfig | null => {
  try {
    return ChannelConfig.parse(JSON.parse(box.open(config, configContext(channelId))));
  } catch (error) {
    if ((error as Error).name === "SecretBoxError") return null;
    throw error;
  }
};

/** What people see: the recipients, or a URL whose secret part is left out. */
export const addressOf = (type: ChannelType, { to = [], url = "" }: ChannelConfig): string => {
  if (type === "email") return to.join(", ");
  const { origin, pathname, search } = new URL(url);
  const rest = `${pathname}${search}`;
  return rest.length > 8 ? `${origin}/…${rest.slice(-4)}` : `${origin}/…`;
};

const ALLOWED: Readonly<Record<ChannelType, readonly (keyof ChannelConfig)[]>> = {
  email: ["to"],
  webhook: ["url", "secret"],
  slack: ["url"],
  discord: ["url"],
  teams: ["url"],
  ntfy: ["url", "token"],
};
const TOPIC = /\/[\w-]{1,64}$/;

const problemsOf = (type: ChannelType, config: ChannelConfig): readonly (readonly [string, string])[] => {
  const needed = type === "email" ? "to" : "url";
  const foreign = Object.keys(config).filter((name) => !(ALLOWED[type] as readonly string[]).includes(name));
  return [
    ...(config[needed] === undefined ? [[needed, `is needed for ${type}`] as const] : []),
    ...foreign.map((name) => [name, `is not for ${type}`] as const),
    ...(type === "ntfy" && config.url !== undefined && !TOPIC.test(new URL(config.url).pathname) ? [["url", "must end with the topic"] as const] : []),
  ];
};

/** Throws VALIDATION_FAILED unless the configuration is one of this kind. */
export const checkConfig = (type: ChannelType, config: ChannelConfig): void => {
  const issues = problemsOf(type, config).map(([field, message]) => ({ path: `config.${field}`, code: "custom", message }));
  if (issues.length > 0) throw new AppError("VALIDATION_FAILED", { details: { issues } });
};

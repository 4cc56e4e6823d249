// The handlers of channels and silences.

import type { AlertChannel, ChannelConfig, ChannelType, contract } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { newWebhookSecret } from "../../core/people/standard-webhooks.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { addressOf, checkConfig, openConfig, sealConfig } from "./channel-config.ts";
import { testMessage } from "./messages.ts";
import type { Send } from "./send.ts";
import { applySilences } from "./silencing.ts";
import { countChannels, deleteChannel, findChannel, findSealed, insertChannel, noteOutcome, pageOfChannels, updateChannel } from "./store/channels.ts";
import { takeChannelOut } from "./store/rules.ts";
import { countSilences, deleteSilence, findSilence, insertSilence, pageOfSilences } from "./store/silences.ts";

export interface ChannelsDeps extends Pick<FeatureKit, "db" | "clock" | "plan" | "secretBox" | "outbound"> {
  readonly send: Send;
  readonly portalUrl: () => string;
}

const MAX_CHANNELS = 500;
const MAX_SILENCES = 100;
const MAX_SILENCE_SECONDS = 30 * 86_400;

type ChannelNames = "listChannels" | "getChannel" | "createChannel" | "updateChannel" | "removeChannel" | "testChannel";

export const createChannelHandlers = ({
  db,
  clock,
  plan,
  secretBox,
  outbound,
  send,
  portalUrl,
}: ChannelsDeps): Pick<Handlers<typeof contract.alerts>, ChannelNames> => {
  const checkUrl = async (type: ChannelType, { tenantId }: SystemScope, config: ChannelConfig): Promise<void> => {
    checkConfig(type, config);
    const reason = config.url === undefined ? null : await outbound.refusal(config.url, tenantId);
    if (reason !== null) throw new AppError("CHANNEL_URL_NOT_ALLOWED", { details: { reason } });
  };
  const find = async (scope: SystemScope, channelId: string): Promise<AlertChannel> => {
    const channel = await findChannel(db, scope, channelId);
    if (channel === null) throw new AppError("CHANNEL_NOT_FOUND", { details: { channelId } });
    return channel;
  };
  /** The new configuration with the secret that it keeps. */
  const replaced = async (tx: Clients, scope: SystemScope, channelId: string, config: ChannelConfig): Promise<ChannelConfig> => {
    const sealed = await findSealed(tx, scope, channelId);
    const secret = config.secret ?? (sealed?.type === "webhook" ? openConfig(secretBox, sealed)?.secret : undefined);
    return secret === undefined ? config : { ...config, secret };
  };
  return {
    listChannels: async ({ scope }, query) => pageWithActors(db, scope, await pageOfChannels(db, scope, query)),
    getChannel: async ({ scope }, { channelId }) => withActor(db, scope, await find(scope, channelId)),
    createChannel: async ({ scope, fail, commit }, { type, config: given, sendResolved = type !== "email", ...channel }) => {
      await checkUrl(type, scope, given);
      const secret = type === "webhook" && given.secret === undefined ? newWebhookSecret() : undefined;
      const config = secret === undefined ? given : { ...given, secret };
      const channelId = newId("chn");
      return commit(async (tx) => {
        await plan.lock(tx, scope);
        if ((await countChannels(tx, scope)) >= MAX_CHANNELS) throw fail("ALERT_LIMIT_REACHED", { limit: MAX_CHANNELS, resource: "alert channels" });
        const sealed = sealConfig(secretBox, channelId, config);
        const address = addressOf(type, config);
        const made = await insertChannel(tx, scope, {
          ...channel,
          channelId,
          type,
          sendResolved,
          config: sealed,
          address,
          createdBy: actorOf(scope.principal),
        });
        return { ...made, ...(secret === undefined ? {} : { secret }) };
      });
    },
    updateChannel: async ({ scope, fail, commit }, { channelId, config: given, ...change }) => {
      const { type } = await find(scope, channelId);
      if (given !== undefined) await checkUrl(type, scope, given);
      return commit(async (tx) => {
        const config = given === undefined ? undefined : await replaced(tx, scope, channelId, given);
        const sealed = config === undefined ? {} : { config: sealConfig(secretBox, channelId, config), address: addressOf(type, config) };
        const channel = await updateChannel(tx, scope, channelId, { ...change, ...sealed });
        if (channel !== null) return channel;
        const now = await findChannel(tx, scope, channelId);
        throw now === null ? fail("CHANNEL_NOT_FOUND", { channelId }) : fail("VERSION_CONFLICT", { currentVersion: now.version });
      });
    },
    removeChannel: ({ scope, fail, commit }, { channelId }) =>
      commit(async (tx) => {
        if (!(await deleteChannel(tx, scope, channelId))) throw fail("CHANNEL_NOT_FOUND", { channelId });
        await takeChannelOut(tx, scope, channelId);
        return null;
      }),
    testChannel: async ({ scope, fail, commit, signal }, { channelId }) => {
      const channel = await findSealed(db, scope, channelId);
      if (channel === null) throw fail("CHANNEL_NOT_FOUND", { channelId });
      const begun = clock.elapsed();
      const { delivered, statusCode, error } = await send({ id: newId("anf"), channel, message: testMessage(channel.name, clock.now(), portalUrl()), signal });
      const durationMs = Math.round(clock.elapsed() - begun);
      return commit(async (tx) => {
        await noteOutcome(tx, scope, channelId, { at: clock.now(), error });
        return { delivered, statusCode, error, durationMs };
      });
    },
  };
};

type SilenceNames = "listSilences" | "getSilence" | "createSilence" | "removeSilence";

export const createSilenceHandlers = ({
  db,
  clock,
  plan,
}: Pick<ChannelsDeps, "db" | "clock" | "plan">): Pick<Handlers<typeof contract.alerts>, SilenceNames> => ({
  listSilences: async ({ scope }, query) => pageWithActors(db, scope, await pageOfSilences(db, scope, query, clock.now())),
  getSilence: async ({ scope, fail }, { silenceId }) => {
    const silence = await findSilence(db, scope, silenceId, clock.now());
    if (silence === null) throw fail("SILENCE_NOT_FOUND", { silenceId });
    return withActor(db, scope, silence);
  },
  createSilence: ({ scope, fail, commit }, { matchers, comment, ...given }) => {
    const startsAt = given.startsAt === undefined ? clock.now() : new Date(given.startsAt);
    const endsAt = new Date(given.endsAt);
    if (endsAt <= startsAt || endsAt <= clock.now() || endsAt > secondsFromNow(MAX_SILENCE_SECONDS, startsAt)) {
      const issues = [{ path: "endsAt", code: "custom", message: "must lie in the future, after the start and at most 30 days after it" }];
      throw new AppError("VALIDATION_FAILED", { details: { issues } });
    }
    return commit(async (tx) => {
      await plan.lock(tx, scope);
      if ((await countSilences(tx, scope, clock.now())) >= MAX_SILENCES) throw fail("ALERT_LIMIT_REACHED", { limit: MAX_SILENCES, resource: "silences" });
      const row = { silenceId: newId("sil"), matchers, startsAt, endsAt, comment, createdBy: actorOf(scope.principal) };
      const silence = await insertSilence(tx, scope, row, clock.now());
      await applySilences(tx, scope.tenantId);
      return silence;
    });
  },
  removeSilence: ({ scope, fail, commit }, { silenceId }) =>
    commit(async (tx) => {
      if (!(await deleteSilence(tx, scope, silenceId))) throw fail("SILENCE_NOT_FOUND", { silenceId });
      await applySilences(tx, scope.tenantId);
      return null;
    }),
});

// Rows of channels. Their configuration is sealed.
import { AlertChannel, type ChannelType, type Page } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given, type RowOf, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";

const toChannel = (row: RowOf<typeof AlertChannel>): AlertChannel => recordOf(AlertChannel, row);
const omit = { config: true } as const;

const list = createListing("alertChannels", { createdAt: { kind: "time" }, name: { kind: "text" } }, { column: "channelId", kind: "text" });

export const pageOfChannels = (db: Clients, scope: SystemScope, query: Parameters<typeof list>[0]): Promise<Page<AlertChannel>> => {
  const { alertChannel } = db.for(scope);
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => alertChannel.findMany({ ...asked, omit }),
    count: () => alertChannel.count(),
    record: toChannel,
  });
};

export const findChannel = async (db: Clients, scope: SystemScope, channelId: string): Promise<AlertChannel | null> => {
  const row = await db.for(scope).alertChannel.findFirst({ where: { channelId }, omit });
  return row === null ? null : toChannel(row);
};

/** The channels among these that the tenant has. */
export const findKnownChannels = async (db: Clients, scope: SystemScope, channelIds: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await db.for(scope).alertChannel.findMany({ where: { channelId: { in: [...channelIds] } }, select: { channelId: true } });
  return new Set(rows.map(({ channelId }) => channelId));
};

export interface SealedChannel {
  readonly channelId: string;
  readonly tenantId: string;
  readonly type: ChannelType;
  readonly name: string;
  readonly config: Uint8Array;
}
export const findSealed = async (db: Clients, scope: SystemScope, channelId: string): Promise<SealedChannel | null> => {
  const select = { channelId: true, tenantId: true, type: true, name: true, config: true } as const;
  const row = await db.for(scope).alertChannel.findFirst({ where: { channelId }, select });
  return row === null ? null : { ...row, type: row.type as ChannelType }; // as: the contract lets no other in
};

export interface NewChannel {
  readonly channelId: string;
  readonly type: ChannelType;
  readonly name: string;
  readonly config: Uint8Array<ArrayBuffer>;
  readonly address: string;
  readonly enabled: boolean;
  readonly isDefault: boolean;
  readonly sendResolved: boolean;
  readonly createdBy: string;
}
export const insertChannel = async (db: Clients, scope: SystemScope, channel: NewChannel): Promise<AlertChannel> =>
  toChannel(await db.for(scope).alertChannel.create({ data: channel, omit }));

export interface ChannelChange extends Partial<Pick<NewChannel, "config" | "address">> {
  readonly name?: string | undefined;
  readonly enabled?: boolean | undefined;
  readonly isDefault?: boolean | undefined;
  readonly sendResolved?: boolean | undefined;
  readonly version?: number | undefined;
}
/** Null when the version has moved on or the channel is gone. */
export const updateChannel = async (
  db: Clients,
  scope: SystemScope,
  channelId: string,
  { version, ...change }: ChannelChange,
): Promise<AlertChannel | null> => {
  const where = { channelId, ...given({ version }) };
  const [row] = await db.for(scope).alertChannel.updateManyAndReturn({ where, data: { ...given(change), version: { increment: 1 } }, omit });
  return row === undefined ? null : toChannel(row);
};

/** False when it is gone. */
export const deleteChannel = async (db: Clients, scope: SystemScope, channelId: string): Promise<boolean> =>
  (await db.for(scope).alertChannel.deleteMany({ where: { channelId } })).count === 1;

export const countChannels = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).alertChannel.count();

/** Null: it went well. */
export const noteOutcome = async (
  db: Clients,
  scope: SystemScope,
  channelId: string,
  { at, error }: { readonly at: Date; readonly error: string | null },
): Promise<void> => {
  const data = error === null ? { lastSentAt: at, lastError: null, lastErrorAt: null } : { lastError: error, lastErrorAt: at };
  await db.for(scope).alertChannel.updateMany({ where: { channelId }, data });
};

// Who did something: beside the id, what it names and how it is called now.
import { z } from "zod";

export const Actor = z.object({
  kind: z.enum(["user", "apiKey", "agent", "system"]),
  id: z.string(),
  name: z
    .string()
    .nullable()
    .describe("Name or email address of the member, name of the key, name or hostname of the device. `null`: it is not known any more."),
  deleted: z.boolean().describe("The person is no longer a member, the key is gone or revoked, or the device was removed."),
});
export type Actor = z.infer<typeof Actor>;

/** The field with the actor, by the field with its id. */
export const ACTOR_FIELDS = {
  createdBy: "actor",
  by: "actor",
  acknowledgedBy: "acknowledgedByActor",
  resolvedBy: "resolvedByActor",
  invitedBy: "invitedByActor",
} as const;
type Fields = typeof ACTOR_FIELDS;

/** An optional id has an optional actor, one that may be null an actor that may be null. */
type ActorSchema<S> = S extends z.ZodOptional ? z.ZodOptional<typeof Actor> : S extends z.ZodNullable ? z.ZodNullable<typeof Actor> : typeof Actor;
type Named<S extends z.ZodRawShape> = S & { readonly [K in keyof S & keyof Fields as Fields[K]]: ActorSchema<S[K]> };

const actorSchema = (id: unknown) => (id instanceof z.ZodOptional ? Actor.optional() : id instanceof z.ZodNullable ? Actor.nullable() : Actor);

/** By the record: one schema for all reads, so that OpenAPI gives it one name. */
const made = new Map<z.ZodObject, z.ZodObject>();
/** The schema of `named`, if a read has it. */
export const namedOf = (record: unknown): z.ZodObject | undefined => (record instanceof z.ZodObject ? made.get(record) : undefined);

/** The record with an actor beside each id of one, as `withActors` of the server answers it. */
export const named = <S extends z.ZodRawShape>(record: z.ZodObject<S>) => {
  const added = Object.entries(ACTOR_FIELDS).flatMap(([id, actor]) => (record.shape[id] === undefined ? [] : [[actor, actorSchema(record.shape[id])]]));
  const schema = made.get(record) ?? record.extend(Object.fromEntries(added));
  made.set(record, schema);
  return schema as z.ZodObject<Named<S>>; // as: entries lose their keys
};

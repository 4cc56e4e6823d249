// Lists of parts of records: the caller names the fields of each item. They are operations of their own, so that the rows of the whole list keep
// their fields for certain, over REST and in the types of clients.
import { z } from "zod";

type PartShape<S extends z.ZodRawShape, I extends keyof S> = { [K in keyof S]: K extends I ? S[K] : z.ZodOptional<S[K]> };

/** The input field that names fields of the record, and the record with no more than these; its id is always there. */
export const partialOf = <S extends z.ZodRawShape, const I extends keyof S & string>(record: z.ZodObject<S>, id: I) => {
  const names = Object.keys(record.shape) as (keyof S & string)[];
  const shape = Object.fromEntries(Object.entries(record.shape).map(([name, field]) => [name, name === id ? field : z.optional(field)]));
  return {
    fields: z.array(z.enum(names)).min(1).max(names.length).describe(`The fields of each item, separated by commas. \`${id}\` is always there.`),
    record: z.object(shape) as unknown as z.ZodObject<PartShape<S, I>>, // as: entries lose their keys
  };
};

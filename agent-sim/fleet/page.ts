// A page of a list as the gateway answers it. Pagination is required: without it a reader would take the first page for all.
import { z } from "zod";
import { Pagination } from "../../protocol/index.ts";

export const pageOf = <Item extends z.ZodType>(item: Item) => z.object({ data: z.array(item), meta: z.object({ pagination: Pagination }) });

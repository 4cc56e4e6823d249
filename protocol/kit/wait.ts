// The input of operations that wait until a record has one of several states.
import { z } from "zod";

export const MAX_WAIT_SECONDS = 60;

export const awaitedFields = <S extends z.ZodType>(status: S) => ({
  status: z.array(status).min(1).max(20).describe("Wait for one of these states, separated by commas."),
  timeout: z
    .int()
    .min(0)
    .max(MAX_WAIT_SECONDS)
    .default(30)
    .describe("Seconds to hold the response. After that it shows the record as it is; compare its status with those that you asked for."),
});

// Puts a time limit on a promise that has none of its own.

/** Rejects with `what` when the promise takes longer. The work itself continues; its late result or error is ignored. */
export const withTimeout = async <T>(work: Promise<T>, waitMs: number, what: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(Object.assign(new Error(`${what} within ${waitMs} ms`), { code: "ETIMEDOUT" })), waitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};

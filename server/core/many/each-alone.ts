// Keeps an unexpected error of one member from failing its neighbours in a slice.
import type { Tx } from "../database.ts";

/**
 * Runs the members together and, if that throws, each half by itself, down to the one that throws, which gets the answer of `failed`. What a run that
 * threw has written is undone. Answers in the order of the members.
 */
export const eachAlone = async <I, O>(
  tx: Tx,
  members: readonly I[],
  run: (members: readonly I[]) => Promise<readonly O[]>,
  failed: (member: I, error: unknown) => O,
): Promise<readonly O[]> => {
  const [first, ...others] = members;
  if (first === undefined) return [];
  await tx.query("savepoint many_slice");
  try {
    const answers = await run(members);
    if (answers.length !== members.length) throw new Error(`a slice of ${members.length} gave ${answers.length} answers`);
    await tx.query("release savepoint many_slice");
    return answers;
  } catch (error) {
    if (!tx.failsAlone(error)) throw error;
    await tx.query("rollback to savepoint many_slice");
    if (others.length === 0) return [failed(first, error)];
    const half = Math.ceil(members.length / 2);
    return [...(await eachAlone(tx, members.slice(0, half), run, failed)), ...(await eachAlone(tx, members.slice(half), run, failed))];
  }
};

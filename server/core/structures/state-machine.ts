// State machines as tables: the states that each state may change to, and the state that each event leads to.
import { AppError } from "../errors.ts";

export interface StateMachine<S extends string, E extends string> {
  /** The state after the event. Throws INVALID_STATE_TRANSITION unless the table lists the change. */
  move(from: S, event: E): S;
  can(from: S, event: E): boolean;
}

export const createStateMachine = <S extends string, E extends string>(
  next: Readonly<Record<S, readonly NoInfer<S>[]>>,
  target: Readonly<Record<E, NoInfer<S>>>,
): StateMachine<S, E> => {
  const can = (from: S, event: E): boolean => next[from].includes(target[event]);
  return {
    can,
    move: (from, event) => {
      const to = target[event];
      if (!can(from, event)) throw new AppError("INVALID_STATE_TRANSITION", { details: { from, to, allowed: [...next[from]] } });
      return to;
    },
  };
};

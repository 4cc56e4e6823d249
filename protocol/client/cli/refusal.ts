// Why a command did not do what it was asked for: one sentence for a person, with what to do.
export class Refusal extends Error {
  override readonly name = "Refusal";
}
/** The command line itself is wrong. */
export class WrongUse extends Refusal {}

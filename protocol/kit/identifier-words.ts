// An identifier as words, where no table has words for it, such as the state of a command.
// It stands alone: the first screen of the console shows states, and none of the words of plans.

const IDENTIFIER = /^[A-Za-z][A-Za-z\d]*(?:_[A-Za-z\d]+)*$/;

/** An identifier in words. Text that is none stays, such as a sentence, a single word or an id. */
export const identifierInWords = (text: string): string => {
  if (!IDENTIFIER.test(text)) return text;
  if (text === text.toUpperCase()) return text.includes("_") ? text.toLowerCase().replaceAll("_", " ") : text;
  return text
    .replaceAll(/([a-z\d])([A-Z])(?=[a-z])/g, (_, before: string, letter: string) => `${before} ${letter.toLowerCase()}`)
    .replaceAll(/([a-z\d])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ");
};

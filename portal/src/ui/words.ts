// Words for identifiers that the gateway or an agent names and that no table of a screen knows, such as the state `rolling_back` or the reason `PORT_TAKEN`.

/** Only identifiers change: a sentence, a word or an id stays as it is. */
export const inWords = (text: string): string => {
  if (!/^[A-Za-z]+(?:_[A-Za-z\d]+)*$/.test(text)) return text;
  const parts = text.replaceAll(/([a-z\d])([A-Z])/g, "$1_$2").split("_");
  return parts.length === 1 ? text : parts.join(" ").toLowerCase();
};

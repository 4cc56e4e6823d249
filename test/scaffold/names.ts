// The names of a new feature in every spelling that the code needs, or a sentence that says why there cannot be one of that name.

export interface GivenNames {
  /** Plural, kebab-case: the path of its REST operations. */
  readonly feature: string;
  readonly one?: string | undefined;
  readonly prefix?: string | undefined;
}

/** What is there already. */
export interface Taken {
  readonly features: readonly string[];
  readonly prefixes: readonly string[];
  readonly models: readonly string[];
}

export class NameError extends Error {}

const FORM = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
/** Names of handlers that every group has; a record of that name would collide with JavaScript. */
const RESERVED: ReadonlySet<string> = new Set([
  "class",
  "default",
  "delete",
  "function",
  "import",
  "new",
  "package",
  "return",
  "switch",
  "type",
  "var",
  "void",
  "kit",
  "index",
]);

const singularOf = (plural: string): string => {
  if (plural.endsWith("ies")) return `${plural.slice(0, -3)}y`;
  if (/(s|x|z|ch|sh)es$/.test(plural)) return plural.slice(0, -2);
  return plural.endsWith("s") && !plural.endsWith("ss") ? plural.slice(0, -1) : plural;
};

const pascal = (kebab: string): string => kebab.replaceAll(/(^|-)(\w)/g, (_match, _dash, letter: string) => letter.toUpperCase());
const camel = (kebab: string): string => kebab.replaceAll(/-(\w)/g, (_match, letter: string) => letter.toUpperCase());
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const namesOf = ({ feature, one = singularOf(feature), prefix = one.replaceAll("-", "").slice(0, 3) }: GivenNames, taken: Taken) => {
  if (!FORM.test(feature)) throw new NameError(`"${feature}" is no name for a feature: use lower case and hyphens, in the plural, such as backup-policies`);
  if (!FORM.test(one)) throw new NameError(`"${one}" is no name for one of them: use lower case and hyphens, such as backup-policy`);
  if (one === feature) throw new NameError(`"${feature}" looks like a singular: name the feature in the plural, or say with --one what one of them is called`);
  if (RESERVED.has(feature) || RESERVED.has(one))
    throw new NameError(`"${RESERVED.has(feature) ? feature : one}" is a word of the language or of the layout; choose another`);
  if (taken.features.includes(feature)) throw new NameError(`there is a feature ${feature} already`);
  if (taken.models.includes(pascal(one))) throw new NameError(`there is a model ${pascal(one)} already; choose another singular with --one`);
  if (!/^[a-z]{2,4}$/.test(prefix)) throw new NameError(`"${prefix}" is no prefix for ids: use two to four letters, with --prefix`);
  if (taken.prefixes.includes(prefix)) throw new NameError(`ids with the prefix ${prefix} exist already; choose another with --prefix`);
  const word = one.replaceAll("-", " ");
  const article = /^[aeiou]/.test(word) ? "an" : "a";
  return {
    feature,
    prefix,
    word,
    group: camel(feature),
    Records: pascal(feature),
    Record: pascal(one),
    record: camel(one),
    table: feature.replaceAll("-", "_"),
    permission: one.replaceAll("-", "_"),
    CODE: one.replaceAll("-", "_").toUpperCase(),
    words: feature.replaceAll("-", " "),
    Words: capital(feature.replaceAll("-", " ")),
    a: article,
    A: capital(article),
  } as const;
};
export type Names = ReturnType<typeof namesOf>;

/** Replaces every {{name}}. */
export const fill = (text: string, names: Names): string =>
  text.replaceAll(/\{\{(\w+)\}\}/g, (match, name: string) => (Object.hasOwn(names, name) ? names[name as keyof Names] : match));

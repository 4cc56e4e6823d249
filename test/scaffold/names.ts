// Derives all spellings of a new feature's name, or throws an error that says why the name is impossible.

export interface GivenNames {
  /** Plural, kebab-case: the folder and the REST path. */
  readonly feature: string;
  readonly one?: string | undefined;
  readonly prefix?: string | undefined;
}

/** The names in use. */
export interface Taken {
  readonly features: readonly string[];
  readonly prefixes: readonly string[];
  readonly models: readonly string[];
}

export class NameError extends Error {}

const FORM = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
/** Reserved words of JavaScript, and the names of files in server/features. */
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
  if (!FORM.test(feature)) throw new NameError(`"${feature}" is not a feature name: use a plural in lower case with hyphens, such as backup-policies`);
  if (!FORM.test(one)) throw new NameError(`"${one}" is not a singular: use lower case with hyphens, such as backup-policy`);
  if (one === feature) throw new NameError(`"${feature}" looks like a singular: use the plural, or give the singular with --one`);
  if (RESERVED.has(feature) || RESERVED.has(one)) throw new NameError(`"${RESERVED.has(feature) ? feature : one}" is a reserved word; choose another`);
  if (taken.features.includes(feature)) throw new NameError(`feature ${feature} already exists`);
  if (taken.models.includes(pascal(one))) throw new NameError(`model ${pascal(one)} already exists; choose another singular with --one`);
  if (!/^[a-z]{2,4}$/.test(prefix)) throw new NameError(`"${prefix}" is not an id prefix: use two to four letters with --prefix`);
  if (taken.prefixes.includes(prefix)) throw new NameError(`id prefix ${prefix} is taken; choose another with --prefix`);
  const word = one.replaceAll("-", " ");
  const article = /^[aeiou]/.test(word) ? "an" : "a";
  return {
    feature,
    one,
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
    Word: capital(word),
    Words: capital(feature.replaceAll("-", " ")),
    a: article,
    A: capital(article),
  } as const;
};
export type Names = ReturnType<typeof namesOf>;

/** Replaces every {{name}}. */
export const fill = (text: string, names: Names): string =>
  text.replaceAll(/\{\{(\w+)\}\}/g, (match, name: string) => (Object.hasOwn(names, name) ? names[name as keyof Names] : match));

// Hides secrets in what people read: logs, failures, outputs of commands. Gateway and agent use this rule, and there is no other. A secret is hidden as it
// is, and as JSON, URLs, HTML, Base64 and hexadecimal write it.

/** A shorter value would hide half of the text and is no secret. */
const MIN_HIDDEN = 4;
/** Characters of encoded forms, of the shortest values first. Once there are as many, longer values are hidden only as they are. */
const MAX_ENCODED = 4_194_304;
export const HIDDEN = "***";

const unicode = (text: string): string => `\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}`;
const upper = (text: string): string => text.replace(/\\u[0-9a-f]{4}/g, (code) => `\\u${code.slice(2).toUpperCase()}`);
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** The forms that JavaScript, Python, PHP, Go and .NET write, and each of them as text inside of JSON. */
const jsonForms = (text: string): readonly string[] => {
  const plain = inJson(text);
  const ascii = plain.replace(/[^\0-~]/g, unicode);
  const go = plain.replace(/[<>&]/g, unicode);
  const dotnet = upper(
    inJson(text.replaceAll('"', "\u0001"))
      .replaceAll("\\u0001", "\\u0022")
      .replace(/[<>&'+`]|[^\0-~]/g, unicode),
  );
  const all = [plain, ascii, upper(ascii), plain.replaceAll("/", "\\/"), ascii.replaceAll("/", "\\/"), go, dotnet];
  return [...all, ...all.map(inJson)];
};

const lowerPercent = (text: string): string => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());

/** Which characters stay differs: by component, by RFC 3986, in forms, in paths, in whole URLs. */
const urlForms = (given: string): readonly string[] => {
  const text = given.toWellFormed();
  const component = encodeURIComponent(text);
  const strict = component.replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  const form = strict.replaceAll("%20", "+").replaceAll("%2A", "*").replaceAll("~", "%7E");
  const all = [component, strict, form, strict.replaceAll("%20", "+"), component.replaceAll("%20", "+"), strict.replaceAll("%2F", "/"), encodeURI(text)];
  return [...all, ...all.map(lowerPercent), encodeURIComponent(strict)];
};

const htmlForms = (text: string): readonly string[] => {
  const common = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return [
    ["&quot;", "&#39;"],
    ["&#34;", "&#39;"],
    ["&quot;", "&#x27;"],
    ["&quot;", "'"],
  ].map(([double = "", single = ""]) => common.replaceAll('"', double).replaceAll("'", single));
};

/** The part that depends on the value alone, at each of the three places where it may begin, and with the last digit of a value that ends the text. */
const base64Forms = (bytes: Buffer): readonly string[] =>
  [0, 1, 2].flatMap((before) => {
    const digits = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    const own = digits.slice(Math.ceil((before * 8) / 6));
    const whole = own.slice(0, Math.floor(((before + bytes.length) * 8) / 6) - Math.ceil((before * 8) / 6));
    return [own, whole].flatMap((core) => {
      const url = core.replaceAll("+", "-").replaceAll("/", "_");
      return [core, url, core.replaceAll("/", "\\/"), encodeURIComponent(core), lowerPercent(encodeURIComponent(core))];
    });
  });

const encodedForms = (text: string): readonly string[] => {
  const bytes = Buffer.from(text);
  const hex = bytes.toString("hex");
  return [...jsonForms(text), ...urlForms(text), ...htmlForms(text), ...base64Forms(bytes), hex, hex.toUpperCase()];
};

/** What to hide: each secret, each line of one that has several, and their encoded forms. The longest first, in case one contains another. */
export const hiddenTexts = (secrets: readonly string[]): readonly string[] => {
  const isLong = (text: string): boolean => text.length >= MIN_HIDDEN;
  const plain = [...new Set(secrets.flatMap((secret) => [secret, ...secret.split(/\r?\n/)]).filter(isLong))].sort((a, b) => a.length - b.length);
  const all = new Set(plain);
  let encoded = 0;
  for (const text of plain) {
    if (encoded > MAX_ENCODED) break;
    for (const form of encodedForms(text)) {
      if (!isLong(form) || all.has(form)) continue;
      all.add(form);
      encoded += form.length;
    }
  }
  return [...all].sort((a, b) => b.length - a.length);
};

/** Multiplier of the rolling hash. A text that is made to collide costs comparisons and hides nothing. */
const BASE = 0x01000193;
const FILTER_BITS = 16;

const beginKey = (text: string, at: number): number =>
  (Math.imul(text.charCodeAt(at), 0x9e3779b1) ^
    Math.imul(text.charCodeAt(at + 1), 0x85ebca6b) ^
    Math.imul(text.charCodeAt(at + 2), 0xc2b2ae35) ^
    Math.imul(text.charCodeAt(at + 3), 0x27d4eb2f)) >>>
  0;

/** Hidden texts of one length that begin alike, by their hash. */
interface SameLength {
  readonly length: number;
  readonly power: number;
  readonly byHash: Map<number, string>;
}

const hashOf = (text: string): { readonly hash: number; readonly power: number } => {
  let [hash, power] = [0, 1];
  for (let at = 0; at < text.length; at += 1) [hash, power] = [(Math.imul(hash, BASE) + text.charCodeAt(at)) >>> 0, Math.imul(power, BASE)];
  return { hash, power };
};

/** Hidden texts by their first characters, the longest first. */
const createIndex = (texts: readonly string[]) => {
  const filter = new Uint8Array(1 << FILTER_BITS);
  const groups = new Map<number, SameLength[]>();
  for (const text of texts) {
    const key = beginKey(text, 0);
    filter[key >>> FILTER_BITS] = 1;
    const { hash, power } = hashOf(text);
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    const same = group.at(-1)?.length === text.length ? group.at(-1) : undefined;
    if (same === undefined) group.push({ length: text.length, power, byHash: new Map([[hash, text]]) });
    else same.byHash.set(hash, text);
  }
  const groupAt = (text: string, at: number): readonly SameLength[] | undefined => {
    const key = beginKey(text, at);
    return filter[key >>> FILTER_BITS] === 0 ? undefined : groups.get(key);
  };
  /** Their first characters, fewer than any of them has. */
  const begins = new Set(texts.flatMap((text) => Array.from({ length: MIN_HIDDEN - 1 }, (_, at) => text.slice(0, at + 1))));
  return { groupAt, begins, longest: texts[0]?.length ?? 0 };
};
type Index = ReturnType<typeof createIndex>;

/** Finds hidden texts in one text. What a place costs does not depend on the length of the hidden texts. */
const createFinder = ({ groupAt, begins }: Index, text: string) => {
  let sums: Uint32Array | null = null;
  const sum = (): Uint32Array => {
    const made = new Uint32Array(text.length + 1);
    for (let at = 0; at < text.length; at += 1) made[at + 1] = Math.imul(made[at] ?? 0, BASE) + text.charCodeAt(at);
    return made;
  };
  return {
    /** Where the longest hidden text ends that begins here; 0 if none does. */
    endOf: (at: number): number => {
      const group = groupAt(text, at);
      if (group === undefined) return 0;
      sums ??= sum();
      for (const { length, power, byHash } of group) {
        const end = at + length;
        if (end > text.length) continue;
        const found = byHash.get(((sums[end] ?? 0) - Math.imul(sums[at] ?? 0, power)) >>> 0);
        if (found !== undefined && text.startsWith(found, at)) return end;
      }
      return 0;
    },
    /** Whether all that follows is the beginning of a hidden text. */
    isBeginning: (at: number): boolean => {
      const rest = text.length - at;
      if (rest < MIN_HIDDEN) return begins.has(text.slice(at));
      return groupAt(text, at)?.some(({ length, byHash }) => length > rest && [...byHash.values()].some((each) => each.startsWith(text.slice(at)))) === true;
    },
  };
};

export interface MaskStream {
  /** What is certain by now. */
  push(text: string): string;
  /** What was held back. */
  end(): string;
}

export interface Masker {
  mask(text: string): string;
  /** Masks a text that was cut: its end may be the beginning of a secret. */
  maskCut(text: string): string;
  /** For a text that comes in parts, wherever they were cut. Holds back no more than the longest secret. */
  stream(): MaskStream;
}

/** Hides secrets, in time that grows with the text and not with the secrets. */
export const createMasker = (secrets: readonly string[]): Masker => {
  const index = createIndex(hiddenTexts(secrets));

  /** Masks up to `cut`. Of the text `covered` characters are hidden already, and tells how many behind `cut` are. */
  const scan = (text: string, covered: number, cut: number): { readonly out: string; readonly covered: number } => {
    const finder = createFinder(index, text);
    let [out, end] = ["", covered];
    for (let at = 0; at < cut && at + MIN_HIDDEN <= text.length; at += 1) {
      const found = finder.endOf(at);
      if (found <= end) continue;
      if (at >= end) out += text.slice(end, at) + HIDDEN;
      end = found;
    }
    return end >= cut ? { out, covered: end - cut } : { out: out + text.slice(end, cut), covered: 0 };
  };
  const beginningIn = (text: string): number => {
    const finder = createFinder(index, text);
    for (let at = Math.max(0, text.length - index.longest + 1); at < text.length; at += 1) if (finder.isBeginning(at)) return at;
    return text.length;
  };

  return {
    mask: (text) => (index.longest === 0 ? text : scan(text, 0, text.length).out),
    maskCut: (text) => {
      const cut = beginningIn(text);
      const { out, covered } = scan(text, 0, cut);
      return cut === text.length || covered > 0 ? out : out + HIDDEN;
    },
    stream: () => {
      let [held, covered] = ["", 0];
      return {
        push: (text) => {
          held += text;
          const cut = beginningIn(held);
          const done = scan(held, covered, cut);
          [held, covered] = [held.slice(cut), done.covered];
          return done.out;
        },
        end: () => {
          const { out } = scan(held, covered, held.length);
          [held, covered] = ["", 0];
          return out;
        },
      };
    },
  };
};

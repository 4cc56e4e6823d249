// What needs somebody in a tenant: asks the features that may know something, and ranks what they say.
import { ATTENTION_KINDS, ATTENTION_TONES, type AttentionLine, contract, MAX_ATTENTION } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import { implement } from "../../core/feature.ts";
import type { Attention, AttentionSource } from "../../core/people/attention.ts";
import type { Feature } from "../kit.ts";

/** The lines of one feature, of which there is rarely more than one. */
const MAX_OF_SOURCE = 20;

const rankOf = ({ tone, kind }: Attention): number => ATTENTION_TONES.indexOf(tone) * ATTENTION_KINDS.length + ATTENTION_KINDS.indexOf(kind);
const sinceMs = ({ since }: Attention): number => since?.getTime() ?? 0;
/** The worst first; within one kind what began last, because it is the news. */
const byRank = (a: Attention, b: Attention): number => rankOf(a) - rankOf(b) || sinceMs(b) - sinceMs(a);

const shown = (line: Attention): AttentionLine => ({ ...line, since: line.since?.toISOString() ?? null });

export const createAttention = ({ sources }: { readonly sources: readonly AttentionSource[] }): Feature<typeof contract.attention> => ({
  handlers: implement(contract.attention, {
    list: async ({ scope }) => {
      const may = permissionsIn(scope);
      const found: Attention[] = [];
      // One after the other: a page that everybody opens first takes one session of the lists at a time.
      for (const { needs, find } of sources) if (may.has(needs)) found.push(...(await find(scope, MAX_OF_SOURCE)));
      return { items: found.sort(byRank).slice(0, MAX_ATTENTION).map(shown) };
    },
  }),
});

// What a cost consists of.

/** Millionths of the currency. */
export type Money = bigint;

export const COST_PARTS = ["device", "fixed", "energy", "cpu", "memory", "storage", "shared"] as const;
export type CostPart = (typeof COST_PARTS)[number];
export type Parts = Readonly<Record<CostPart, Money>>;

export const FREE: Parts = { device: 0n, fixed: 0n, energy: 0n, cpu: 0n, memory: 0n, storage: 0n, shared: 0n };

/** Each part of the one by the part of the other. */
export const combine = (a: Parts, b: Parts, by: (a: Money, b: Money) => Money): Parts =>
  Object.fromEntries(COST_PARTS.map((part) => [part, by(a[part], b[part])])) as Record<CostPart, Money>; // as: one for each

export const addParts = (a: Parts, b: Parts): Parts => combine(a, b, (left, right) => left + right);
export const totalOf = (parts: Parts): Money => COST_PARTS.reduce((total, part) => total + parts[part], 0n);

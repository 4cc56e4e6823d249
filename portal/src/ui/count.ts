// Numbers for people, alone and with what they count.

export const numbers = new Intl.NumberFormat();

/** Such as `1 device` and `2,000 devices`. */
export const counted = (count: number, one: string, more = `${one}s`): string => `${numbers.format(count)} ${count === 1 ? one : more}`;

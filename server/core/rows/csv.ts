// Lines of CSV that a spreadsheet opens without running any of it.

/** Spreadsheets take text that begins so for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

const cell = (value: unknown): string => {
  const text = value == null ? "" : String(value);
  const plain = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};

export const csvLine = (cells: readonly unknown[]): string => `${cells.map(cell).join(",")}\r\n`;

// A small line of one figure over time, from 0 to 100, beside the figure itself. A gap is a time without figures.
const WIDTH = 96;
const HEIGHT = 20;

export const Spark = ({ label, values }: { readonly label: string; readonly values: readonly (number | null)[] }) => {
  const step = WIDTH / Math.max(1, values.length - 1);
  const parts = values.map((value, at) =>
    value === null ? "" : `${(values[at - 1] ?? null) === null ? "M" : "L"}${(at * step).toFixed(1)} ${(HEIGHT - 1 - (value / 100) * (HEIGHT - 2)).toFixed(1)}`,
  );
  return (
    <svg width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <path d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} stroke="var(--line)" fill="none" />
      <path d={parts.join("")} stroke="var(--accent)" strokeWidth="1.25" strokeLinejoin="round" fill="none" />
    </svg>
  );
};

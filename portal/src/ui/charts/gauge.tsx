// A value against its limit, as a bar with both numbers. From four fifths on it warns, at the limit it alarms.
import css from "./gauge.module.css";

export interface GaugeProps {
  readonly label: string;
  readonly value: number;
  /** Null is unlimited. */
  readonly limit: number | null;
}

const NEAR = 0.8;
const LENGTH = 100;
const numbers = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

const toneOf = (value: number, limit: number | null): "good" | "warn" | "bad" => {
  if (limit === null || value < limit * NEAR) return "good";
  return value < limit ? "warn" : "bad";
};

export const Gauge = ({ label, value, limit }: GaugeProps) => {
  const tone = value === 0 ? "good" : toneOf(value, limit);
  const part = limit === null || value === 0 ? 0 : Math.min(1, value / Math.max(limit, 1e-9));
  const words = limit === null ? `${numbers.format(value)}, unlimited` : `${numbers.format(value)} of ${numbers.format(limit)}`;
  return (
    <div className={css["gauge"]}>
      <div className={css["head"]}>
        <span>{label}</span>
        <span className={tone === "good" ? "muted" : css[tone]}>{words}</span>
      </div>
      <svg className={css["bar"]} viewBox={`0 0 ${LENGTH} 6`} preserveAspectRatio="none" aria-hidden="true">
        <rect width={LENGTH} height="6" className={css["empty"]} />
        <rect width={LENGTH * part} height="6" className={css[tone]} fill="currentColor" />
      </svg>
    </div>
  );
};

// What an enrollment token is for: how many machines, how long, with which tags, and whether a person approves each.

export interface TokenTerms {
  /** Null: any number. */
  readonly maxUses: number | null;
  readonly expiresInSeconds: number;
  readonly tags: string[];
  readonly approval: "none" | "required";
  readonly allowRepair: boolean;
}
export const ONE_MACHINE: TokenTerms = { maxUses: 1, expiresInSeconds: 3_600, tags: [], approval: "none", allowRepair: false };

export const termsOf = (fields: FormData, tags: string[]): TokenTerms => {
  const uses = String(fields.get("maxUses"));
  return {
    maxUses: uses === "" ? null : Number(uses),
    expiresInSeconds: Number(fields.get("life")),
    tags,
    approval: fields.get("approval") === "on" ? "required" : "none",
    allowRepair: fields.get("allowRepair") === "on",
  };
};

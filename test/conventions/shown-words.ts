// Finds identifiers in sentences that people read: `alertRules`, `past_due`, `PORT_TAKEN`.
import ts from "typescript";

const QUOTED = /`[^`]*`|"[^"]*"|\$\{[^}]*\}|\{\w+\}|https?:\/\/\S+/g;
/** Camel case, snake case in either case; not a brand such as PostgreSQL, which begins with a capital letter. */
const IDENTIFIER = /(?<![\w./@-])(?:[a-z]+[a-z\d]*[A-Z][A-Za-z\d]*|[A-Za-z][A-Za-z\d]*_[A-Za-z\d_]+)(?![\w@]|\.\w|-\w)/g;

/** Identifiers in a text, apart from those that it quotes. */
export const identifiersIn = (text: string): readonly string[] => text.replaceAll(QUOTED, " ").match(IDENTIFIER) ?? [];

/** Attributes whose text is read or spoken. */
const SPOKEN: ReadonlySet<string> = new Set(["title", "label", "aria-label", "placeholder", "word", "hint", "submit", "alt"]);
const isSentence = (text: string): boolean => /\S\s+\S/.test(text);

const inCode = (node: ts.Node): boolean => {
  for (let up: ts.Node | undefined = node.parent; up !== undefined; up = up.parent)
    if (ts.isJsxElement(up) && /^(code|pre)$/.test(up.openingElement.tagName.getText())) return true;
  return false;
};
/** Types of templates and texts that a program reads: class names, keys, paths, comparisons. */
const isForPrograms = (node: ts.Node): boolean => {
  const { parent } = node;
  if (ts.isJsxAttribute(parent)) return !SPOKEN.has(parent.name.getText());
  if (ts.isImportDeclaration(parent) || ts.isLiteralTypeNode(parent) || ts.isElementAccessExpression(parent)) return true;
  if (ts.isPropertyAssignment(parent)) return parent.name === node || /^(width|className|id)$/.test(parent.name.getText());
  return false;
};

export interface Shown {
  readonly line: number;
  readonly words: readonly string[];
}

/** Sentences with identifiers in a console's source: texts between tags, spoken attributes, and all strings of several words. */
export const shownIn = (file: string, text: string): readonly Shown[] => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, file.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS);
  const found: Shown[] = [];
  const look = (node: ts.Node, shown: string): void => {
    const words = identifiersIn(shown);
    if (words.length > 0) found.push({ line: source.getLineAndCharacterOfPosition(node.getStart()).line + 1, words });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node) && !inCode(node)) look(node, node.text);
    if (ts.isStringLiteralLike(node) && !isForPrograms(node) && !inCode(node)) {
      const isSpoken = ts.isJsxAttribute(node.parent);
      if (isSpoken || isSentence(node.text)) look(node, node.text);
    }
    if (ts.isTemplateExpression(node) && !inCode(node)) {
      const all = [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join("{value}");
      if (isSentence(all)) look(node, all);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
};

/** Places that show an identifier as it is where words are missing: `WORDS[kind] ?? kind`, `replaceAll("_", " ")`. A tone is a color. */
export const rawIn = (file: string, text: string): readonly string[] => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, file.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (
      ts.isBinaryExpression(node) &&
      node.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken &&
      ts.isElementAccessExpression(node.left) &&
      !ts.isNumericLiteral(node.right)
    )
      if (node.left.argumentExpression.getText() === node.right.getText() && !/TONES$/.test(node.left.expression.getText())) found.push(node.getText());
    if (ts.isCallExpression(node) && /\.replace(All)?$/.test(node.expression.getText()) && /^("_"|\/_\/g?)$/.test(node.arguments[0]?.getText() ?? ""))
      found.push(node.getText());
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
};

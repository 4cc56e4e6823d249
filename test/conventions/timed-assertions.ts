// Finds assertions on measured time in a test's source: such a test fails on a busy machine and says nothing about the product.
import ts from "typescript";

const COMPARES = /^(toBeLessThan|toBeGreaterThan)(OrEqual)?$|^toBeCloseTo$/;
const COMPARISONS: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.LessThanToken,
  ts.SyntaxKind.LessThanEqualsToken,
  ts.SyntaxKind.GreaterThanToken,
  ts.SyntaxKind.GreaterThanEqualsToken,
]);
const NOW = /^new Date\(\)$|^systemClock\.now\(\)$/;
const CLOCK = /^(performance\.now|Date\.now|process\.hrtime(\.bigint)?|process\.uptime)$/;

/**
 * What an expression is: a moment that a clock gives now or gave before; a distance from such a moment to another value, as in `until - Date.now()` and
 * `before + 5_000`; or time that the test measures.
 */
const KINDS = ["now", "then", "from now", "from then", "time"] as const;
type Kind = (typeof KINDS)[number] | null;
const stronger = (kinds: readonly Kind[]): Kind => KINDS.findLast((kind) => kinds.includes(kind)) ?? null;

const LIST_METHODS = /^(at|filter|slice|sort|toSorted|reverse|toReversed)$/;
/** The expression's own parts, without those that make another value of them: texts, dates, objects, and calls of other functions. */
const partsOf = (node: ts.Expression): readonly ts.Expression[] => {
  if (ts.isAwaitExpression(node) || ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isNonNullExpression(node)) return [node.expression];
  if (ts.isPrefixUnaryExpression(node)) return [node.operand];
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse];
  if (ts.isBinaryExpression(node)) return [node.left, node.right];
  if (ts.isElementAccessExpression(node)) return [node.expression];
  if (!ts.isCallExpression(node)) return [];
  if (/^(Math\.\w+|Number)$/.test(node.expression.getText())) return [...node.arguments];
  if (ts.isPropertyAccessExpression(node.expression) && LIST_METHODS.test(node.expression.name.text)) return [node.expression.expression];
  return [];
};

/** The values that a function returns. */
const resultsOf = (body: ts.ConciseBody): readonly ts.Expression[] => {
  if (!ts.isBlock(body)) return [body];
  const found: ts.Expression[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isReturnStatement(node) && node.expression !== undefined) found.push(node.expression);
    if (!ts.isFunctionLike(node)) ts.forEachChild(node, visit);
  };
  visit(body);
  return found;
};

/** A number, or a setting such as `SHORT.limitMs`. */
const isConstant = (node: ts.Expression): boolean => ts.isNumericLiteral(node) || /^[A-Z][A-Z_\d]*(\.\w+)?$/.test(node.getText());
const ARITHMETIC: ReadonlySet<ts.SyntaxKind> = new Set([ts.SyntaxKind.MinusToken, ts.SyntaxKind.PlusToken]);
type Names = Map<string, Exclude<Kind, null>>;

const kindOfCall = (node: ts.CallExpression, names: Names): Kind => {
  const called = node.expression;
  if (CLOCK.test(called.getText())) return "now";
  if (ts.isIdentifier(called)) return names.get(called.text) ?? null;
  if (!ts.isPropertyAccessExpression(called)) return null;
  if (called.name.text === "getTime" && NOW.test(called.expression.getText())) return "now";
  // `done.then(() => performance.now())`
  const [then] = node.arguments;
  if (called.name.text !== "then" || then === undefined || !ts.isArrowFunction(then)) return null;
  return stronger(resultsOf(then.body).map((result) => kindOf(result, names)));
};

/** The kind of a sum or difference; null for other operators. */
const kindOfSum = ({ left, operatorToken, right }: ts.BinaryExpression, names: Names): Kind => {
  if (!ARITHMETIC.has(operatorToken.kind)) return null;
  const [a, b] = [kindOf(left, names), kindOf(right, names)];
  // `Date.now() - answer` counts against the test, as does a difference of two moments.
  const measures = (a !== null && b !== null) || (operatorToken.kind === ts.SyntaxKind.MinusToken && a !== null && !isConstant(right));
  if (measures || a === "time" || b === "time") return "time";
  return (a ?? b)?.endsWith("now") ? "from now" : "from then";
};

const kindOf = (node: ts.Expression, names: Names): Kind => {
  if (ts.isIdentifier(node)) return names.get(node.text) ?? null;
  if (ts.isPropertyAccessExpression(node)) return names.get(node.name.text) ?? null;
  const kind = stronger(partsOf(node).map((part) => kindOf(part, names)));
  if (kind !== null && ts.isBinaryExpression(node)) return kindOfSum(node, names) ?? kind;
  if (kind?.startsWith("from") && ts.isCallExpression(node)) return /^Math\.(round|floor|ceil)$/.test(node.expression.getText()) ? kind : "time";
  return kind ?? (ts.isCallExpression(node) ? kindOfCall(node, names) : null);
};

/** Names of variables, properties, lists and functions that hold or return a moment or a time. */
const namesIn = (source: ts.SourceFile): Names => {
  const names: Names = new Map();
  const note = (name: ts.Node, given: Kind): void => {
    if (given === null || !ts.isIdentifier(name)) return;
    const kind = given === "now" ? "then" : given === "from now" ? "from then" : given;
    names.set(name.text, stronger([kind, names.get(name.text) ?? null]) ?? kind);
  };
  const ofValue = (value: ts.Expression): Kind =>
    ts.isArrowFunction(value) || ts.isFunctionExpression(value) ? stronger(resultsOf(value.body).map((result) => kindOf(result, names))) : kindOf(value, names);
  const noteList = (list: ts.BindingName, value: ts.Expression): void => {
    if (!ts.isArrayBindingPattern(list) || !ts.isArrayLiteralExpression(value)) return;
    for (const [at, element] of list.elements.entries()) {
      const one = value.elements[at];
      if (ts.isBindingElement(element) && one !== undefined) note(element.name, ofValue(one));
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.initializer !== undefined) {
      note(node.name, ofValue(node.initializer));
      noteList(node.name, node.initializer);
    }
    if (ts.isPropertyAssignment(node)) note(node.name, ofValue(node.initializer));
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) note(node.left, ofValue(node.right));
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression) && node.expression.name.text === "push")
      note(node.expression.expression, stronger(node.arguments.map((one) => kindOf(one, names))));
    ts.forEachChild(node, visit);
  };
  // Each pass follows names one step further.
  for (let size = -1; size !== names.size; ) {
    size = names.size;
    visit(source);
  }
  return names;
};

/** The call of `expect` on which a matcher is called, through `.not`, `.resolves` and the like. */
const expectOf = (node: ts.Expression): ts.CallExpression | null => {
  if (ts.isPropertyAccessExpression(node)) return expectOf(node.expression);
  return ts.isCallExpression(node) && /^expect(\.soft)?$/.test(node.expression.getText()) ? node : null;
};

/**
 * Whether a busy machine can break the comparison. It cannot where a limit is counted from a clock that is read later, or a minimum from one that was read
 * before: load makes both only truer.
 */
const isBreakable = (matcher: string, subject: Kind, wanted: Kind): boolean => {
  if (subject === "time" || wanted === "time") return true;
  const [distance, other] = subject?.startsWith("from") ? [subject, wanted] : [wanted, subject];
  if (!distance?.startsWith("from")) return false;
  const isSafe = matcher.startsWith("toBeLess") ? distance === "from now" : matcher.startsWith("toBeGreater") && distance === "from then";
  return !isSafe || other !== null;
};

const NAMED_AS_TIME = /^(took|elapsed|lasted|spent)(Ms|Seconds)?$/;
const isNamedAsTime = (node: ts.Expression): boolean =>
  (ts.isIdentifier(node) && NAMED_AS_TIME.test(node.text)) || (ts.isPropertyAccessExpression(node) && NAMED_AS_TIME.test(node.name.text));
/** Whether a value is measured time, by what it is computed from or by what it is called where another file measures. */
const isTime = (node: ts.Expression, names: Names): boolean =>
  (kindOf(node, names) ?? "then").startsWith("from") || kindOf(node, names) === "time" || isNamedAsTime(node);

/** Whether a value to be asserted holds a comparison with measured time: `a - b < 100`. */
const comparesTime = (node: ts.Node, names: Names): boolean => {
  if (ts.isFunctionLike(node)) return false;
  if (ts.isBinaryExpression(node) && COMPARISONS.has(node.operatorToken.kind) && (isTime(node.left, names) || isTime(node.right, names))) return true;
  return ts.forEachChild(node, (child) => comparesTime(child, names) || undefined) ?? false;
};

/** A timer as a pause in a test's own flow: `await delay(50)`, `new Promise((resolve) => setTimeout(resolve, 50))`. */
const isPause = (node: ts.Node, timers: ReadonlySet<string>): boolean => {
  if (ts.isAwaitExpression(node) && ts.isCallExpression(node.expression)) return timers.has(node.expression.expression.getText());
  if (!ts.isNewExpression(node) || node.expression.getText() !== "Promise") return false;
  const [run] = node.arguments ?? [];
  const [resolve] = run !== undefined && ts.isArrowFunction(run) ? run.parameters : [];
  if (run === undefined || resolve === undefined) return false;
  return new RegExp(`\\bsetTimeout\\(\\s*${resolve.name.getText()}\\s*,`).test(run.getText());
};

/** The names under which a file imports the promise of a timer. */
const timersIn = (source: ts.SourceFile): ReadonlySet<string> =>
  new Set(
    source.statements.flatMap((statement) => {
      if (!ts.isImportDeclaration(statement) || statement.moduleSpecifier.getText().slice(1, -1) !== "node:timers/promises") return [];
      const bindings = statement.importClause?.namedBindings;
      if (bindings === undefined || !ts.isNamedImports(bindings)) return [];
      return bindings.elements.filter((one) => (one.propertyName ?? one.name).text === "setTimeout").map(({ name }) => name.text);
    }),
  );

export interface Timed {
  readonly line: number;
  readonly text: string;
}

/** Assertions on measured time and pauses, in the order of the source. */
export const timedIn = (file: string, text: string): readonly Timed[] => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const [names, timers] = [namesIn(source), timersIn(source)];
  const found: Timed[] = [];
  const add = (node: ts.Node): void =>
    void found.push({ line: source.getLineAndCharacterOfPosition(node.getStart()).line + 1, text: node.getText().replaceAll(/\s+/g, " ") });
  const visit = (node: ts.Node): void => {
    if (isPause(node, timers)) add(node);
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const [subject] = expectOf(node.expression.expression)?.arguments ?? [];
      const [wanted] = node.arguments;
      const matcher = node.expression.name.text;
      const [a, b] = [subject, wanted].map((value) => (value === undefined ? null : isNamedAsTime(value) ? "time" : kindOf(value, names)));
      const compared = COMPARES.test(matcher) && isBreakable(matcher, a ?? null, b ?? null);
      if (subject !== undefined && (compared || comparesTime(subject, names))) add(node);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
};

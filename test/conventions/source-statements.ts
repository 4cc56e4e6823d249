// Finds the raw SQL of the server with the compiler: the declared statements with their rows, and the files that pass undeclared text to the database.
import { join, relative } from "node:path";
import ts from "typescript";

export type Kind = "string" | "number" | "boolean" | "Date" | "bytes" | "array" | "object" | "unknown";
export interface Field {
  readonly isOptional: boolean;
  readonly kinds: ReadonlySet<Kind>;
}
export interface DeclaredStatement {
  readonly name: string;
  readonly file: string;
  readonly row: ReadonlyMap<string, Field>;
}
export interface Sources {
  readonly statements: readonly DeclaredStatement[];
  /** Files that pass undeclared text to the database. */
  readonly plain: ReadonlySet<string>;
}

const ROOT = join(import.meta.dirname, "../..");
/** It forwards the statements of its callers. */
const PLUMBING = "server/platform/database/db.ts";

/** Two thirds of all text, and no row or statement has a type of theirs: they are read as empty, so what they declare has no type. */
const UNREAD = /\/(?:prisma\/generated|node_modules\/(?:stripe|@redis))\//;

const openProgram = (): ts.Program => {
  const config = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config.config, include: ["server/**/*.ts"] }, ts.sys, ROOT);
  const host = ts.createCompilerHost(options);
  const readFile = host.readFile;
  host.readFile = (name) => (UNREAD.test(name) && !name.endsWith(".json") ? "export {};" : readFile(name));
  return ts.createProgram({ rootNames: ts.sys.readDirectory(join(ROOT, "server"), [".ts"]), options: { ...options, noEmit: true }, host });
};

const partsOf = (type: ts.Type): readonly ts.Type[] => (type.isUnion() ? type.types : [type]);

const kindsOf = (checker: ts.TypeChecker, type: ts.Type): ReadonlySet<Kind> => {
  const kindOf = (part: ts.Type): Kind | null => {
    if (part.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)) return null;
    if (part.flags & (ts.TypeFlags.Unknown | ts.TypeFlags.Any)) return "unknown";
    if (part.flags & ts.TypeFlags.StringLike) return "string";
    if (part.flags & ts.TypeFlags.NumberLike) return "number";
    if (part.flags & ts.TypeFlags.BooleanLike) return "boolean";
    // A branded id is an intersection of a string and its brand.
    if (part.isIntersection() && part.types.some((each) => each.flags & ts.TypeFlags.StringLike)) return "string";
    if (checker.isArrayLikeType(part)) return "array";
    const name = part.getSymbol()?.name;
    return name === "Date" ? "Date" : name === "Buffer" || name === "Uint8Array" ? "bytes" : "object";
  };
  return new Set(partsOf(type).flatMap((part) => kindOf(part) ?? []));
};

/** The fields of a row type; of a union, the fields of all members. */
const fieldsOf = (checker: ts.TypeChecker, row: ts.Type): ReadonlyMap<string, Field> => {
  const fields = new Map<string, Field>();
  for (const part of partsOf(row))
    for (const property of checker.getPropertiesOfType(part)) {
      const kinds = kindsOf(checker, checker.getTypeOfSymbol(property));
      const known = fields.get(property.name)?.kinds ?? [];
      fields.set(property.name, { isOptional: (property.flags & ts.SymbolFlags.Optional) !== 0, kinds: new Set([...known, ...kinds]) });
    }
  return fields;
};

const isDeclaration = (node: ts.CallExpression): boolean => ts.isIdentifier(node.expression) && node.expression.text === "statement";

const declarationOf = (checker: ts.TypeChecker, node: ts.CallExpression, file: string): DeclaredStatement => {
  const [name] = node.arguments;
  if (name === undefined || !ts.isStringLiteral(name)) throw new Error(`${file}: a statement's name must be a string literal`);
  const row = node.typeArguments?.[0];
  return { name: name.text, file, row: row === undefined ? new Map() : fieldsOf(checker, checker.getTypeFromTypeNode(row)) };
};

/** A constant that `statement()` declares, or a parameter that says so. The type of the call tells the same, but Prisma's clients make it dear. */
const isKnownStatement = (checker: ts.TypeChecker, text: ts.Expression): boolean => {
  const found = checker.getSymbolAtLocation(text);
  const symbol = found !== undefined && (found.flags & ts.SymbolFlags.Alias) !== 0 ? checker.getAliasedSymbol(found) : found;
  const declared = symbol?.valueDeclaration;
  if (declared === undefined) return false;
  if (ts.isVariableDeclaration(declared) && declared.initializer !== undefined && ts.isCallExpression(declared.initializer))
    return isDeclaration(declared.initializer);
  return ts.isParameter(declared) && declared.type !== undefined && ts.isTypeReferenceNode(declared.type) && declared.type.typeName.getText() === "Statement";
};

/** `query` and `execute` of our own interfaces, and Prisma's raw queries. */
const takesPlainText = (checker: ts.TypeChecker, node: ts.Node): boolean => {
  if (ts.isPropertyAccessExpression(node)) return /^\$(query|execute)Raw(Unsafe)?$/.test(node.name.text);
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression) || !/^(query|execute)$/.test(node.expression.name.text)) return false;
  const [text] = node.arguments;
  if (text !== undefined && isKnownStatement(checker, text)) return false;
  // Control of the transaction reads no table.
  if (text !== undefined && ts.isStringLiteral(text) && /^(savepoint|release savepoint|rollback to savepoint) \w+$/.test(text.text)) return false;
  // What has no type may be anything.
  if (checker.getTypeAtLocation(node.expression.expression).flags & ts.TypeFlags.Any) return true;
  if (text === undefined || checker.getTypeAtLocation(text).aliasSymbol?.name === "Statement") return false;
  const declared = checker.getResolvedSignature(node)?.declaration?.parameters[0];
  return declared !== undefined && ts.isParameter(declared) && declared.type?.getText().includes("Statement<") === true;
};

export const readSources = (): Sources => {
  const program = openProgram();
  const checker = program.getTypeChecker();
  const statements: DeclaredStatement[] = [];
  const plain = new Set<string>();
  const visit =
    (file: string) =>
    (node: ts.Node): void => {
      if (ts.isCallExpression(node) && isDeclaration(node)) statements.push(declarationOf(checker, node, file));
      if (takesPlainText(checker, node) && file !== PLUMBING) plain.add(file);
      ts.forEachChild(node, visit(file));
    };
  for (const source of program.getSourceFiles()) {
    const file = relative(ROOT, source.fileName);
    if (file.startsWith("server/")) visit(file)(source);
  }
  return { statements, plain };
};

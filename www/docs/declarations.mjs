/** What the package exports, read from the declarations that it ships. */

import { join } from "node:path";
import ts from "typescript";

const options = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
  noEmit: true,
};

/** The path of an entry's declarations: `{ name, file }` for each of `exports`. */
function entriesOf(folder, { exports, types, typesVersions }) {
  const named = typesVersions["*"];
  return Object.keys(exports)
    .filter((path) => !/\.(wasm|json)$/.test(path))
    .map((path) => ({ name: path.slice(2), file: join(folder, path === "." ? types : named[path.slice(2)][0]) }));
}

const clean = (text) => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\s+/g, " ").replace(/\s*;\s*$/, "").trim();
const head = (text) => clean(text).replace(/^export /, "").replace(/^declare /, "");

/**
 * Reads the entries of the package in `folder`, whose manifest is `manifest`. Each is `{ name, symbols }`, a symbol `{ name,
 * kind, signatures, doc, members, home }`: `home` is the first entry that exports it. A member is `{ name, signature, doc,
 * members }`.
 */
export function readEntries(folder, manifest) {
  const entries = entriesOf(folder, manifest);
  const program = ts.createProgram(entries.map(({ file }) => file), options);
  const checker = program.getTypeChecker();
  const doc = (symbol) => (symbol ? ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim() : "");
  const homes = new Map();
  const exports = entries.map(({ name, file }) => ({ name, symbols: checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file))) }));
  const exported = new Set(exports.flatMap(({ symbols }) => symbols.map((symbol) => symbol.getName())));

  /** The object type that a type node has, itself or among others: where options of an option are. */
  function literal(node) {
    if (!node) return undefined;
    if (ts.isTypeLiteralNode(node)) return node.members.some((member) => doc(checker.getSymbolAtLocation(member.name)) !== "") ? node : undefined;
    if (ts.isUnionTypeNode(node) || ts.isIntersectionTypeNode(node)) return node.types.map(literal).find(Boolean);
    return undefined;
  }

  function member(symbol) {
    const declarations = symbol.getDeclarations() ?? [];
    const shown = declarations.filter((declaration) => !ts.isParameter(declaration));
    if (shown.length === 0) return undefined;
    const inner = literal(shown[0].type);
    const text = (declaration) => {
      const whole = declaration.getText();
      return clean(inner ? whole.replace(inner.getText(), "{ … }") : whole);
    };
    const members = inner ? inner.members.map((node) => member(checker.getSymbolAtLocation(node.name))).filter(Boolean) : [];
    const name = symbol.getName() === ts.InternalSymbolName.Call ? "()" : symbol.getName();
    return { name, signature: shown.map(text).join("\n"), doc: doc(symbol), members };
  }

  function membersOf(symbol, declaration) {
    const isObject = ts.isInterfaceDeclaration(declaration) || ts.isClassDeclaration(declaration);
    const isLiteral = ts.isTypeAliasDeclaration(declaration) && ts.isTypeLiteralNode(declaration.type);
    if (!isObject && !isLiteral) return [];
    // What is inherited is said where it belongs, if that is a page; else here.
    const bases = (declaration.heritageClauses ?? []).flatMap(({ types }) => types.flatMap((base) => base.getText().match(/\w+/g)));
    const isSaidElsewhere = bases.some((base) => exported.has(base));
    const own = isSaidElsewhere ? Array.from(symbol.members.values()) : checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol));
    const fixed = ts.isClassDeclaration(declaration) ? checker.getPropertiesOfType(checker.getTypeOfSymbol(symbol)).filter((found) => found.getName() !== "prototype") : [];
    // Of what is inherited from the language, such as the stack of an error, nothing is said here.
    const ours = (found) => (found.getDeclarations() ?? []).some((node) => !program.isSourceFileDefaultLibrary(node.getSourceFile()));
    const isMember = ({ flags }) => (flags & (ts.SymbolFlags.Property | ts.SymbolFlags.Method | ts.SymbolFlags.Accessor)) !== 0;
    const called = symbol.members?.get(ts.InternalSymbolName.Call);
    return [called, ...own.filter(isMember), ...fixed].filter((found) => found && ours(found)).map(member).filter((found) => found && !found.name.startsWith("__#"));
  }

  function signatures(symbol, declarations) {
    return declarations.map((declaration) => {
      if (ts.isVariableDeclaration(declaration)) return `const ${clean(declaration.getText())}`;
      const text = declaration.getText();
      const isObject = ts.isInterfaceDeclaration(declaration) || ts.isClassDeclaration(declaration);
      const isLiteral = ts.isTypeAliasDeclaration(declaration) && ts.isTypeLiteralNode(declaration.type);
      if (isObject) return head(text.slice(0, declaration.members.pos - declaration.getStart() - 1));
      if (isLiteral) return head(text.slice(0, declaration.type.getStart() - declaration.getStart())).replace(/ =$/, "");
      return head(text);
    });
  }

  function describe(alias, entry) {
    const symbol = alias.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(alias) : alias;
    const declarations = symbol.getDeclarations() ?? [];
    const [first] = declarations;
    const name = alias.getName();
    if (!homes.has(symbol)) homes.set(symbol, { entry, name });
    const isType = ts.isInterfaceDeclaration(first) || ts.isTypeAliasDeclaration(first);
    const kind = isType ? "type" : ts.isClassDeclaration(first) ? "class" : ts.isVariableDeclaration(first) ? "constant" : "function";
    const members = membersOf(symbol, first);
    return { name, kind, signatures: signatures(symbol, declarations), doc: doc(alias) || doc(symbol), members, home: homes.get(symbol) };
  }

  return exports.map(({ name, symbols }) => ({ name, symbols: symbols.map((symbol) => describe(symbol, name)) }));
}

import { builtinModules } from 'node:module'
import ts from 'typescript'

export interface Import {
  line: number
  /** As written, with `fs` read as `node:fs`; null for an `import()` of something computed. */
  specifier: string | null
  /** Erased when compiled: nothing of the target is loaded. */
  typeOnly: boolean
  /** The values taken by name (types left out); null where everything is in reach (`import *`, `import()`, `export *`). */
  values: readonly string[] | null
}

/** Every import of a file, by syntax alone: static, dynamic, `require`, types (also `import('x').T` in place) and re-exports. */
export function readImports(file: ts.SourceFile): Import[] {
  const imports: Import[] = []
  const visit = (node: ts.Node): void => {
    const found = readImport(node)
    if (found !== undefined) {
      imports.push({ ...found, line: file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1 })
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return imports
}

function readImport(node: ts.Node): Omit<Import, 'line'> | undefined {
  if (ts.isImportDeclaration(node)) {
    const typeOnly = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
    return describe(node.moduleSpecifier, typeOnly, importedValues(node.importClause))
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    const names =
      node.exportClause !== undefined && ts.isNamedExports(node.exportClause) ? node.exportClause.elements : null
    return describe(node.moduleSpecifier, node.isTypeOnly, names === null ? null : valueNames(names))
  }
  if (ts.isImportTypeNode(node)) {
    return describe(ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined, true, null)
  }
  if (ts.isImportEqualsDeclaration(node) && ts.isExternalModuleReference(node.moduleReference)) {
    return describe(node.moduleReference.expression, node.isTypeOnly, null)
  }
  return ts.isCallExpression(node) && isLoader(node.expression) ? describe(node.arguments[0], false, null) : undefined
}

function describe(target: ts.Node | undefined, typeOnly: boolean, values: string[] | null): Omit<Import, 'line'> {
  return { specifier: specifierOf(target), typeOnly, values: typeOnly ? [] : values }
}

const isLoader = (callee: ts.Expression) =>
  callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === 'require')

function specifierOf(node: ts.Node | undefined): string | null {
  if (node === undefined || !ts.isStringLiteralLike(node)) return null
  return builtinModules.includes(node.text) ? `node:${node.text}` : node.text
}

function importedValues(clause: ts.ImportClause | undefined): string[] | null {
  const named = clause?.namedBindings
  if (named !== undefined && ts.isNamespaceImport(named)) return null
  return [
    ...(clause?.name === undefined ? [] : ['default']),
    ...(named === undefined ? [] : valueNames(named.elements)),
  ]
}

const valueNames = (elements: ts.NodeArray<ts.ImportSpecifier | ts.ExportSpecifier>) =>
  elements.filter(({ isTypeOnly }) => !isTypeOnly).map(({ propertyName, name }) => (propertyName ?? name).text)

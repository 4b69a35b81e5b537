import ts from 'typescript'

/** A global a wall may forbid: `console`, or `process.<property>`; `process` alone where the whole object is handed on. */
export interface GlobalUse {
  line: number
  name: string
}

const WATCHED = ['console', 'process'] as const

/**
 * Where a file uses `console` and `process`, by syntax alone: plainly, by key, destructured or through globalThis. A variable or
 * parameter of the same name is not the global.
 */
export function readGlobals(file: ts.SourceFile): GlobalUse[] {
  const shadowed = new Map(WATCHED.map((name) => [name as string, scopesDeclaring(file, name)]))
  const uses: GlobalUse[] = []
  const visit = (node: ts.Node): void => {
    const { line } = file.getLineAndCharacterOfPosition(node.getStart(file))
    for (const name of readUses(node, shadowed)) uses.push({ line: line + 1, name })
    ts.forEachChild(node, visit)
  }
  visit(file)
  return uses
}

function readUses(node: ts.Node, shadowed: ReadonlyMap<string, ReadonlySet<ts.Node>>): string[] {
  if (!ts.isIdentifier(node) || !WATCHED.some((name) => name === node.text)) return []
  const { parent } = node
  const ofGlobalThis = ts.isPropertyAccessExpression(parent) && parent.name === node
  if (ofGlobalThis ? !isGlobalThis(parent.expression) : !isReference(node) || isInside(node, shadowed.get(node.text)!))
    return []
  return node.text === 'console' ? ['console'] : usesOfProcess(ofGlobalThis ? parent : node)
}

const isGlobalThis = (node: ts.Expression) =>
  ts.isIdentifier(node) && (node.text === 'globalThis' || node.text === 'global')

/** False where the identifier only names something: a key, a type's property, a declaration. */
function isReference(node: ts.Identifier): boolean {
  const { parent } = node
  if (ts.isTypeNode(parent) || ts.isQualifiedName(parent) || ts.isTypeElement(parent)) return false
  if (ts.isBindingElement(parent) || ts.isParameter(parent) || ts.isVariableDeclaration(parent))
    return parent.initializer === node
  if (ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent)) return parent.initializer === node
  return (
    !ts.isImportSpecifier(parent) &&
    !ts.isExportSpecifier(parent) &&
    !ts.isImportClause(parent) &&
    !ts.isMethodDeclaration(parent)
  )
}

function usesOfProcess(object: ts.Expression): string[] {
  const { parent } = object
  if (ts.isPropertyAccessExpression(parent) && parent.expression === object) return [`process.${parent.name.text}`]
  if (ts.isElementAccessExpression(parent) && ts.isStringLiteralLike(parent.argumentExpression))
    return [`process.${parent.argumentExpression.text}`]
  if (!ts.isVariableDeclaration(parent) || !ts.isObjectBindingPattern(parent.name)) return ['process']
  return parent.name.elements.map(({ propertyName, name, dotDotDotToken }) => {
    const taken = propertyName ?? name
    return dotDotDotToken === undefined && ts.isIdentifier(taken) ? `process.${taken.text}` : 'process'
  })
}

/** The blocks and functions in which `name` is somebody's own variable or parameter, and so not the global. */
function scopesDeclaring(file: ts.SourceFile, name: string): Set<ts.Node> {
  const scopes = new Set<ts.Node>()
  const visit = (node: ts.Node): void => {
    const declares = ts.isBindingElement(node) || ts.isParameter(node) || ts.isVariableDeclaration(node)
    if (declares && ts.isIdentifier(node.name) && node.name.text === name) {
      let scope: ts.Node = node.parent
      while (!opensScope(scope)) scope = scope.parent
      scopes.add(scope)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return scopes
}

const opensScope = (node: ts.Node) =>
  ts.isFunctionLike(node) || ts.isBlock(node) || ts.isSourceFile(node) || ts.isIterationStatement(node, false)

function isInside(node: ts.Node, scopes: ReadonlySet<ts.Node>): boolean {
  for (let scope = node; !ts.isSourceFile(scope); scope = scope.parent) if (scopes.has(scope)) return true
  return scopes.has(node.getSourceFile())
}

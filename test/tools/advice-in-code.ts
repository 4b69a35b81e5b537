/**
 * Every text that the code can put into a `hint`, whichever way it gets there: through variables, parameters with all their calls,
 * functions with all they return, and tables.
 */
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ROOMS = /^(?:tools|domain|pce-client|plugins\/errors)\//

interface Advice {
  /** Source of a text, with its quotes; `where` it stands. */
  texts: Map<string, string>
  /** Expressions that this search does not understand. */
  unknown: string[]
}

/** Functions that give an error a hint in another place than a property of this name. */
const HINT_AT: Record<string, number> = { withDetails: 2, withHint: 3 }

export function adviceInCode(): Advice {
  const { fileNames } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(`${ROOT}/tsconfig.json`, (path) => ts.sys.readFile(path)).config,
    ts.sys,
    ROOT,
  )
  const files = fileNames.filter((name) => ROOMS.test(relative(ROOT, name)))
  const options: ts.CompilerOptions = { module: ts.ModuleKind.NodeNext, noLib: true, types: [], noCheck: true }
  const host = ts.createCompilerHost(options)
  // Libraries advise nothing, and reading their types takes most of the time.
  host.resolveModuleNameLiterals = (names, from) =>
    names.map(({ text }) =>
      text.startsWith('.')
        ? ts.resolveModuleName(text, from, options, host, undefined, undefined, ts.ModuleKind.ESNext)
        : { resolvedModule: undefined },
    )
  const program = ts.createProgram(files, options, host)
  const checker = program.getTypeChecker()
  const sources = program.getSourceFiles().filter(({ fileName }) => files.includes(fileName))
  const texts = new Map<string, string>()
  const unknown: string[] = []
  const seen = new Set<ts.Node>()
  const calls = new Map<ts.Node, ts.CallExpression[]>()

  const placeOf = (node: ts.Node) => {
    const source = node.getSourceFile()
    return `${relative(ROOT, source.fileName)}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`
  }
  const declarationOf = (node: ts.Node): ts.Node | undefined => {
    let symbol = ts.isShorthandPropertyAssignment(node.parent)
      ? checker.getShorthandAssignmentValueSymbol(node.parent)
      : checker.getSymbolAtLocation(node)
    if (symbol !== undefined && (symbol.flags & ts.SymbolFlags.Alias) !== 0) symbol = checker.getAliasedSymbol(symbol)
    return symbol?.valueDeclaration
  }
  /** The function that a declaration declares. */
  const functionOf = (node: ts.Node | undefined): ts.SignatureDeclaration | undefined =>
    node === undefined
      ? undefined
      : ts.isFunctionLike(node)
        ? node
        : ts.isVariableDeclaration(node) && node.initializer !== undefined && ts.isFunctionLike(node.initializer)
          ? node.initializer
          : undefined

  const visit = (node: ts.Node, each: (node: ts.Node) => void): void => {
    each(node)
    ts.forEachChild(node, (child) => visit(child, each))
  }
  for (const source of sources)
    visit(source, (node) => {
      if (!ts.isCallExpression(node) || !ts.isIdentifier(node.expression)) return
      const called = functionOf(declarationOf(node.expression))
      if (called !== undefined) calls.set(called, [...(calls.get(called) ?? []), node])
    })

  /** What a function returns, not what functions inside it do. */
  const returnsOf = (fn: ts.SignatureDeclaration): ts.Expression[] => {
    const body = (fn as ts.ArrowFunction).body as ts.ConciseBody | undefined
    if (body === undefined) return []
    if (!ts.isBlock(body)) return [body]
    const found: ts.Expression[] = []
    const look = (node: ts.Node): void => {
      if (ts.isFunctionLike(node)) return
      if (ts.isReturnStatement(node) && node.expression !== undefined) found.push(node.expression)
      ts.forEachChild(node, look)
    }
    look(body)
    return found
  }

  const resolve = (node: ts.Node | undefined): void => {
    if (node === undefined || seen.has(node)) return
    seen.add(node)
    if (ts.isStringLiteralLike(node)) texts.set(node.getText(), placeOf(node))
    else if (ts.isTemplateExpression(node)) texts.set(node.getText(), placeOf(node))
    else if (ts.isConditionalExpression(node)) [node.whenTrue, node.whenFalse].forEach(resolve)
    else if (ts.isBinaryExpression(node)) {
      if (node.operatorToken.kind !== ts.SyntaxKind.AmpersandAmpersandToken) resolve(node.left)
      resolve(node.right)
    } else if (
      ts.isParenthesizedExpression(node) ||
      ts.isAsExpression(node) ||
      ts.isNonNullExpression(node) ||
      ts.isAwaitExpression(node) ||
      ts.isSpreadElement(node) ||
      ts.isSatisfiesExpression(node)
    )
      resolve(node.expression)
    else if (ts.isArrayLiteralExpression(node)) node.elements.forEach(resolve)
    else if (ts.isObjectLiteralExpression(node))
      node.properties.forEach((one) => resolve(ts.isPropertyAssignment(one) ? one.initializer : undefined))
    else if (ts.isFunctionLike(node)) returnsOf(node).forEach(resolve)
    else if (ts.isElementAccessExpression(node)) resolve(node.expression)
    else if (ts.isPropertyAccessExpression(node)) {
      // What an error says already was found where it was made.
      if (node.name.text !== 'hint') unknown.push(`${placeOf(node)} ${node.getText()}`)
    } else if (ts.isCallExpression(node)) {
      const name = ts.isPropertyAccessExpression(node.expression) ? node.expression.name : node.expression
      const fn = functionOf(declarationOf(name))
      if (fn !== undefined) return resolve(fn)
      if (!ts.isPropertyAccessExpression(node.expression))
        return void unknown.push(`${placeOf(node)} ${node.getText()}`)
      // Methods of lists pass on what the list has, or what their function makes of it.
      if (/^(?:map|flatMap)$/.test(node.expression.name.text)) resolve(node.arguments[0])
      else resolve(node.expression.expression)
    } else if (ts.isIdentifier(node)) {
      if (node.text === 'undefined') return
      const declared = declarationOf(node)
      if (declared !== undefined && ts.isParameter(declared)) {
        resolve(declared.initializer)
        const at = declared.parent.parameters.indexOf(declared)
        for (const call of calls.get(declared.parent) ?? []) resolve(call.arguments[at])
      } else if (declared !== undefined && ts.isVariableDeclaration(declared)) resolve(declared.initializer)
      else if (declared !== undefined && functionOf(declared) !== undefined) resolve(functionOf(declared))
      else if (declared !== undefined && ts.isBindingElement(declared)) {
        const holder = declared.parent.parent
        if (ts.isArrayBindingPattern(declared.parent) && ts.isVariableDeclaration(holder)) resolve(holder.initializer)
        else if ((declared.propertyName ?? declared.name).getText() !== 'hint')
          unknown.push(`${placeOf(node)} ${node.text}`)
      } else unknown.push(`${placeOf(node)} ${node.text}`)
    } else if (node.kind !== ts.SyntaxKind.NullKeyword) unknown.push(`${placeOf(node)} ${node.getText()}`)
  }

  for (const source of sources)
    visit(source, (node) => {
      const isHint =
        (ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node)) && node.name.getText() === 'hint'
      if (isHint && ts.isPropertyAssignment(node) && !node.initializer.getText().startsWith('Type.'))
        resolve(node.initializer)
      if (isHint && ts.isShorthandPropertyAssignment(node)) resolve(node.name)
      if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
        const at = HINT_AT[node.expression.text]
        if (at !== undefined) resolve(node.arguments[at])
      }
    })
  return { texts, unknown }
}

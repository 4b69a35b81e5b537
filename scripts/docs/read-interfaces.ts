import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

/** A property of an interface, with its name and type as in the source. */
export interface PropertyDoc {
  name: string
  type: string
  optional: boolean
  text: string
}

export interface MethodDoc {
  name: string
  parameters: { name: string; type: string; optional: boolean }[]
  /** The result type without `Promise<>`. */
  result: string
  /** The first sentence of the method's docstring, or an empty text. */
  summary: string
  deprecated: boolean
}

export interface InterfaceDoc {
  name: string
  methods: MethodDoc[]
  properties: PropertyDoc[]
}

/**
 * Parses the sources in a folder and its subfolders. Types are not checked, because the documents need only their
 * names.
 */
export function parseFolder(folder: string): ts.SourceFile[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((name) => parseText(join(folder, name), readFileSync(join(folder, name), 'utf8')))
}

export function parseText(path: string, text: string): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
}

/**
 * Lists the interfaces that a type combines with `&` or `extends`, in order, even if aliases are in between. Types that
 * are defined in other ways (mapped types) are left out. Throws Error if a name cannot be found.
 */
export function readParts(sources: readonly ts.SourceFile[], name: string): InterfaceDoc[] {
  const declaration = find(sources, name, isNamedType)
  if (ts.isInterfaceDeclaration(declaration)) {
    const parents = (declaration.heritageClauses ?? []).flatMap(({ types }) => types.map((type) => type.getText()))
    const own = readInterface(sources, name)
    return [
      ...parents.flatMap((parent) => readParts(sources, parent)),
      ...(own.methods.length + own.properties.length > 0 ? [own] : []),
    ]
  }
  const { type } = declaration
  const parts = ts.isIntersectionTypeNode(type) ? [...type.types] : [type]
  return parts.filter(ts.isTypeReferenceNode).flatMap((part) => readParts(sources, part.getText()))
}

/** Reads the interface of this name. Throws Error if there is none or more than one. */
export function readInterface(sources: readonly ts.SourceFile[], name: string): InterfaceDoc {
  const { members } = find(sources, name, ts.isInterfaceDeclaration)
  return {
    name,
    methods: mergeOverloads(members.filter(ts.isMethodSignature).map(readMethod)),
    properties: members.filter(ts.isPropertySignature).map((property) => ({
      ...readSlot(property.name, property.type, property.questionToken),
      text: textOf(property),
    })),
  }
}

/** Reads the bullet list in the docstring of a type. For each bullet, returns its terms and its text. */
export function readBullets(sources: readonly ts.SourceFile[], name: string): { terms: string[]; text: string }[] {
  const [doc] = ts.getJSDocCommentsAndTags(find(sources, name, isNamedType)).filter(ts.isJSDoc)
  return (ts.getTextOfJSDocComment(doc?.comment) ?? '')
    .split(/^- /m)
    .slice(1)
    .map((bullet) => {
      const [, terms = '', text = ''] = /^((?:`\w+`(?:, )?)+): (.*)$/s.exec(bullet) ?? []
      return { terms: [...terms.matchAll(/\w+/g)].map(([term]) => term), text: toPlain(text) }
    })
}

type NamedType = ts.InterfaceDeclaration | ts.TypeAliasDeclaration

function isNamedType(node: ts.Node): node is NamedType {
  return ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)
}

function find<T extends NamedType>(
  sources: readonly ts.SourceFile[],
  name: string,
  isWanted: (node: ts.Node) => node is T,
): T {
  const found = sources
    .flatMap((source) => [...source.statements] as ts.Node[])
    .filter((statement): statement is T => isWanted(statement) && statement.name.text === name)
  if (found.length !== 1) throw new Error(`${found.length} types are called ${name}`)
  return found[0]!
}

function readMethod(method: ts.MethodSignature): MethodDoc {
  const result = method.type?.getText() ?? 'void'
  const text = textOf(method)
  return {
    name: method.name.getText(),
    parameters: method.parameters.map(({ name, type, questionToken }) => readSlot(name, type, questionToken)),
    result: onOneLine(/^Promise<(.*)>$/s.exec(result)?.[1] ?? result),
    // A full stop ends a sentence only before a space; otherwise it is part of a name or a number.
    summary: /^.*?[.](?=\s[A-Z`]|$)/.exec(text)?.[0] ?? text,
    deprecated: ts.getJSDocDeprecatedTag(method) !== undefined,
  }
}

/** Merges the overloads of a method into one method, with the text of the first overload and the results of all. */
function mergeOverloads(methods: readonly MethodDoc[]): MethodDoc[] {
  const firsts = methods.filter((method, at) => methods.findIndex(({ name }) => name === method.name) === at)
  return firsts.map((first) => {
    const forms = methods.filter(({ name }) => name === first.name)
    const isOptional = (at: number) => forms.some(({ parameters }) => parameters[at]?.optional !== false)
    return {
      ...first,
      parameters: first.parameters.map((parameter, at) => ({ ...parameter, optional: isOptional(at) })),
      result: [...new Set(forms.map(({ result }) => result))].join(' | '),
      summary: forms.map(({ summary }) => summary).find((summary) => summary !== '') ?? '',
    }
  })
}

function readSlot(name: ts.Node, type: ts.Node | undefined, questionToken: ts.Node | undefined) {
  return {
    name: name.getText(),
    type: onOneLine(type?.getText() ?? 'unknown'),
    optional: questionToken !== undefined,
  }
}

/** Returns the text of a docstring, including the text of its deprecation tag. */
function textOf(node: ts.Node): string {
  const [doc] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc)
  const deprecated = ts.getJSDocDeprecatedTag(node)
  const texts = [doc?.comment, deprecated?.comment].map((comment) => ts.getTextOfJSDocComment(comment) ?? '')
  return toPlain(texts.filter((text) => text !== '').join(' '))
}

/** Removes citations from a text, because readers of the page do not need them. */
function toPlain(text: string): string {
  return onOneLine(text).replaceAll(/ \([DPST]\d+(?:, [DPST]\d+)*\)/g, '')
}

function onOneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').trim()
}

import { createHash, randomUUID } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Document as YamlDocument, isMap, isScalar, isSeq, visit } from 'yaml'
import type { Document } from '../../../domain/policy-files/convert-objects.js'
import type { FileKind } from '../../../domain/policy-files/name-book.js'
import { escapeJson, hidesCharacters } from '../../../domain/text/escape-text.js'

/**
 * Formats a document as YAML. Strings with invisible characters are quoted and escaped, so that a reviewer sees these
 * characters. Every string that YAML 1.1 would read as another type is quoted, too.
 */
export function formatYaml(document: Document): string {
  const yaml = new YamlDocument(document, { compat: 'yaml-1.1', aliasDuplicateObjects: false })
  let hides = false
  visit(yaml, {
    Scalar(_key, node) {
      if (typeof node.value !== 'string' || !hidesCharacters(node.value)) return
      hides = true
      node.type = 'QUOTE_DOUBLE'
    },
    Map(_key, node, path) {
      // A small map without nested values, such as a port or an address range, is written on one line.
      if (path.length > 1 && node.items.every(({ value }) => isScalar(value))) node.flow = true
    },
  })
  flattenScopes(yaml)
  const text = yaml.toString({ lineWidth: 0, flowCollectionPadding: true })
  return hides ? text.split('\n').map(escapeJson).join('\n') : text
}

/** Writes each scope on one line. A scope is a list of labels that must all apply. */
function flattenScopes(yaml: YamlDocument): void {
  const scopes = yaml.get('scopes', true)
  if (isSeq(scopes)) for (const scope of scopes.items) if (isSeq(scope) || isMap(scope)) scope.flow = true
}

const FOLDERS = {
  services: 'services',
  ip_lists: 'ip-lists',
  label_groups: 'label-groups',
  rule_sets: 'rule-sets',
} as const satisfies Record<FileKind, string>

/** File names that Windows reserves, even with an extension. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)$/
const LONGEST = 80

/**
 * Chooses a file path for each document. An object keeps the file that it already has. The name of a new file is
 * derived from the object's name, in lower-case ASCII, so that no two paths collide on file systems that ignore case.
 * If two objects would get the same path, a part of the digest of the object's full name is appended to each.
 * @param taken the paths of the files that exist, by type and name of their objects.
 */
export function choosePaths(
  documents: readonly { kind: FileKind; document: Document }[],
  taken: ReadonlyMap<string, string>,
): Map<string, string> {
  const paths = new Map<string, string>()
  const used = new Set<string>([...taken.values()].map((path) => path.toLowerCase()))
  const sharing = new Map<string, number>()
  const plainOf = ({ kind, document }: (typeof documents)[number]) => `${FOLDERS[kind]}/${shorten(document.name)}`
  for (const one of documents) sharing.set(plainOf(one), (sharing.get(plainOf(one)) ?? 0) + 1)
  for (const one of documents) {
    const key = `${one.kind} ${one.document.name}`
    const known = taken.get(key)
    const plain = plainOf(one)
    const isClear = sharing.get(plain) === 1 && !used.has(`${plain}.yaml`) && !RESERVED.test(shorten(one.document.name))
    const digest = createHash('sha256').update(one.document.name).digest('hex').slice(0, 12)
    const path = known ?? (isClear ? `${plain}.yaml` : `${plain}-${digest}.yaml`)
    used.add(path.toLowerCase())
    paths.set(key, path)
  }
  return paths
}

const shorten = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, LONGEST)
    .replace(/^-|-$/g, '') || 'unnamed'

/** Writes a file, and creates its folder if necessary. The file is written completely or not at all. */
export async function writeWhole(folder: string, path: string, text: string): Promise<void> {
  const target = join(folder, path)
  await mkdir(dirname(target), { recursive: true })
  const scratch = join(dirname(target), `.${randomUUID()}.unfinished`)
  try {
    await writeFile(scratch, text, { flag: 'wx' })
    await rename(scratch, target)
  } catch (error) {
    await rm(scratch, { force: true })
    throw error
  }
}
